"""Losses: the established ones by family, the paper's three, a user's own, and their catalogue.

May import the mathematics, the diagnosis and `paper`. Read `likelihood` and `noise_robust` first,
the losses as functions, then `spec` (a loss as a value), `catalogue`, `structured` (the paper's
CAPM, HPG and APMS) and `own` (a user's).

Each is `loss(logits[..., K], labels[...], *, ...) -> [...]`, one value per example.
"""

from typing import TYPE_CHECKING

from pgeom.deferred import lazy_names

if TYPE_CHECKING:
    from pgeom.losses.functions import *  # noqa: F403

# commands import the catalogue, and parse their arguments without JAX
__getattr__, __dir__ = lazy_names(__name__, "pgeom.losses.functions")

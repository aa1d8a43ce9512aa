"""Losses: the paper's three objectives, and the fourteen they are compared with.

May import the mathematics. Read `likelihood` and `noise_robust` first, then `spec` (a loss as a
value), `catalogue`, `candidates` (the paper's three with their constants) and `own` (a user's).

Each is `loss(logits[..., K], labels[...], *, ...) -> [...]`, one value per example.
"""

from typing import TYPE_CHECKING

from pgeom.deferred import lazy_names

if TYPE_CHECKING:
    from pgeom.losses.functions import *  # noqa: F403

# commands import the catalogue, and parse their arguments without JAX
__getattr__, __dir__ = lazy_names(__name__, "pgeom.losses.functions")

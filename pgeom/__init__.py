"""Structured proper loss geometries for multiclass classification.

Write a convex generator on the simplex, get a strictly proper loss and its exact guarantees:

>>> import jax.numpy as jnp
>>> import pgeom
>>> def cubic(p): return jnp.sum(p**3)
>>> loss = pgeom.on_logits(pgeom.bregman_score(cubic))
>>> loss(jnp.array([[2.0, 0.0, 1.0]]), jnp.array([0]))
Array([0.29194], dtype=float32)

The library is read in this order: `types`, `checks`, `functions` (what a user passes in),
`derivatives`, `special` and `simplex`; `generators`, `scores`, `links`; `diagnosis`,
`certificates`, `paper`, `losses`; `models`, `training`, `sklearn`. Each may import those before it;
`data` and `evaluation` stand beside. The public names are in `public`.
"""

from typing import TYPE_CHECKING

from pgeom.deferred import lazy_names

if TYPE_CHECKING:
    from pgeom.public import *  # noqa: F403

# the commands of the project import this package too, and parse their arguments without JAX
__getattr__, __dir__ = lazy_names(__name__, "pgeom.public")

"""Noise channels: how a regime changes the probabilities of the labels, exactly.

>>> from pgeom.data.regimes import Regime
>>> transition(Regime.parse("symmetric-40"), 3).tolist()
[[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from pgeom.data.regimes import Regime


def transition(
    regime: Regime, K: int, noise_map: Sequence[int] | None = None
) -> Float[np.ndarray, "K K"]:
    """P(observed | clean), one row per clean class.

    Args:
      regime: clean, or of noise that depends on the class alone.
      K: the number of classes.
      noise_map: `[K]`, that of the dataset, for asymmetric noise.

    Raises:
      ValueError: for noise that depends on the features, and for a long tail.
    """
    rate, identity = regime.noise_rate, np.eye(K)
    if regime.kind == "symmetric":
        moved = (1 - identity) / (K - 1)
    elif regime.kind == "pair-flip":
        moved = np.roll(identity, 1, axis=1)
    elif regime.kind == "asymmetric" and noise_map is not None:
        moved = identity[list(noise_map)]
    elif regime.kind == "clean":
        return identity
    else:
        raise ValueError(f"{regime} is no channel: labels change by more than their class")
    return (1 - rate) * identity + rate * moved

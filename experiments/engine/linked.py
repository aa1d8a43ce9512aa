"""What the study of links has beside the catalogue: a Tsallis score, and a name for its pairs.

>>> TSALLIS.label, dict(TSALLIS.constants)
('Tsallis 1.5', {'alpha': 1.5, 'mean_curvature': 2.0})
"""

from functools import cache

from pgeom.losses.catalogue import GENERATOR, MEAN_CURVATURE
from pgeom.losses.spec import LossSpec

LINKED = "_canonical"  # ends the name of a loss by its canonical link, beside that by softmax


def _generator(stats, **constants):
    return _tsallis(stats.counts.shape[0], **constants)


@cache
def _tsallis(K, *, alpha, mean_curvature):
    # here and not above: to name a loss does not need JAX
    from pgeom.generators import tsallis
    from pgeom.losses.structured import matched

    return matched(lambda: 1.0 * tsallis(alpha), K, mean_curvature)


TSALLIS = LossSpec(
    "tsallis",
    "Tsallis 1.5",
    GENERATOR,
    constants={"alpha": 1.5, "mean_curvature": MEAN_CURVATURE},
    studied=True,
    proper=True,
    generator=_generator,
)

"""Temperature scaling, fitted to full convergence.

The calibrated forecast is the softmax of the logits at the fitted temperature, which ranks the
classes as before. The plain fit minimises the NLL of the data. With `prior=1.0`, as in the records
of the experiments, it counts one pseudo-example of a uniform label beside them, so that a
validation set without an error does not ask for certainty. When the best temperature is 0 (a
perfectly separated set, plainly fitted) or ∞ (uninformative logits) the bound is returned, and the
result says so.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import calibration
>>> logits = 6.0 * jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
>>> labels = jnp.array([0, 0, 1, 0])  # three of four are right: log(3) is the calibrated logit
>>> plain = calibration.fit_temperature(logits, labels)
>>> round(float(plain.temperature * jnp.log(3.0)), 4), bool(plain.at_bound)
(6.0, False)
>>> fit = calibration.fit_temperature(logits, labels, prior=1.0)  # three and a half of five
>>> round(float(fit.temperature * jnp.log(3.5 / 1.5)), 4)
6.0
>>> calibration.rescale(logits, fit.temperature).shape
(4, 2)
"""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.evaluation.batch import Values, align
from pgeom.evaluation.reliability_curve import ReliabilityCurve, reliability_curve
from pgeom.geometry import scaling
from pgeom.geometry.scaling import Temperature
from pgeom.types import AnyArray

__all__ = ["ReliabilityCurve", "Temperature", "fit_temperature", "reliability_curve", "rescale"]


def fit_temperature(logits: Values, labels: Values, *, prior: float = 0.0) -> Temperature:
    """The temperature that minimises the NLL of scaled logits, if asked for with a prior.

    argmin_T −Σ_i log softmax(z_i / T)_{y_i} − prior · (1/K) Σ_k log softmax(m e_1 / T)_k

    The pseudo-example has every label with a share of 1/K, and the logits (m, 0, …, 0), m being the
    median range of the logits of an example: the usual mixture of n/(n+1) of the data and 1/(n+1)
    of the uniform forecast. In 1/T the objective is convex.

    Logits that are equal within every example have no best temperature: 1 is returned. Logits that
    are not finite, such as those of a diverged run, give NaN.

    Args:
      logits: those of the validation set, `[..., n, K]`.
      labels: integers, `[..., n]`.
      prior: how many examples the pseudo-example counts for; 0 is the plain fit, which asks for
        T = 0 where every label has the largest logit.

    Returns:
      The `Temperature`, one per leading index.
    """
    edge.check_nonnegative("prior", prior)
    scores, labels, dtype = align(logits, labels)
    fit = scaling.fit_temperature(scores, labels, prior=prior)
    return fit._replace(temperature=fit.temperature.astype(dtype))


def rescale(
    logits: Float[AnyArray, "*runs n K"], temperature: ArrayLike
) -> Float[Array, "*runs n K"]:
    """The logits at a temperature, z / T.

    Args:
      logits: `[..., n, K]`.
      temperature: positive, `[...]`.

    Returns:
      `[..., n, K]`.
    """
    return jnp.asarray(logits) / jnp.asarray(temperature)[..., None, None]

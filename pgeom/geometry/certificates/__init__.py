"""Proofs of convexity and curvature by ball arithmetic: `pgeom.certify(F, K)`.

A jaxpr is read as a real expression (`reader`, `algebra`), and the methods of `prover` are tried on
it: curvature `rules`, structured Hessians (`forms`), bisection (`covers`), and `disproofs`. Only
`prover` and what it imports need python-flint.
"""

from pgeom import edge
from pgeom.geometry.certificates.certificate import Certificate
from pgeom.types import Generator

__all__ = ["Certificate", "certify"]


def certify(F: Generator, K: int) -> Certificate:
    """Prove or disprove that F is convex on the simplex of K classes, and bound its curvature.

    What is proved is about the real function that F's jaxpr denotes: literals are the floats that
    they are, and arithmetic is exact.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.

    Returns:
      A `Certificate`, which `python -m proofs_numeric.checker` verifies once it is written.

    Raises:
      ModuleNotFoundError: without python-flint, which the extra `certify` installs.
    """
    edge.check_num_classes(K)
    try:
        from pgeom.geometry.certificates.prover import prove
    except ModuleNotFoundError as error:
        if error.name != "flint":
            raise
        message = "certify needs python-flint, which pip install 'pgeom[certify]' brings"
        raise ModuleNotFoundError(message, name="flint") from None
    return prove(F, int(K))

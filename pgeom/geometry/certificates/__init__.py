"""Proofs of convexity, curvature and ranges by ball arithmetic: `pgeom.certify(F, K)`.

A jaxpr is read as a real expression (`reader`, `algebra`), and the methods of `prover` are tried on
it: curvature `rules`, structured Hessians (`forms`), bisection (`covers`), and `disproofs`; values
are bounded by `extremes`. Only `prover`, `extremes` and what they import need python-flint.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pgeom import edge
from pgeom.geometry.certificates.certificate import Certificate
from pgeom.types import Generator

if TYPE_CHECKING:  # which needs python-flint
    from pgeom.geometry.certificates.extremes import RangeCertificate

__all__ = ["Certificate", "certify", "certify_range"]


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
    with _needing_flint():
        from pgeom.geometry.certificates.prover import prove
    return prove(F, int(K))


def certify_range(F: Generator, K: int, *, gap: float = 1e-3) -> "RangeCertificate":
    """Bounds on the least and the largest value of F on the simplex of K classes, proved.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.
      gap: how far a bound may be from a value that is attained, relative to it, if F is not convex.

    Returns:
      A `RangeCertificate`, which `python -m proofs_numeric.checker` verifies once it is written.

    Raises:
      ValueError: if F uses an operation that cannot be read.
      ModuleNotFoundError: without python-flint, which the extra `certify` installs.
    """
    edge.check_num_classes(K)
    with _needing_flint():
        from pgeom.geometry.certificates.extremes import prove_range
    return prove_range(F, int(K), gap=gap)


@contextmanager
def _needing_flint() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "flint":
            raise
        message = "certify needs python-flint, which pip install 'pgeom[certify]' brings"
        raise ModuleNotFoundError(message, name="flint") from None

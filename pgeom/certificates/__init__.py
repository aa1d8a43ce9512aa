"""Proofs of convexity, curvature and ranges by ball arithmetic: `pgeom.certify(F, K)`.

In the order of reading: `expression` (real functions on the simplex) and `algebra` (identities);
`reader` and `operations` (a jaxpr as an expression), `rewriting` (the form that is proved);
`arithmetics` (intervals, balls and floats) and `matrices`; `ridges` and `rules` (what is convex,
and why), `hessians` (bounds on cells), `disproofs`; `prover`, `ranges`, and `certificate`, the
document, which `proofs_numeric.checker` verifies without any of this. What needs python-flint is
imported when something is to be proved. From pgeom they use the types, the simplex and the tracing
of generators.
"""

from typing import TYPE_CHECKING

from pgeom import checks, extras
from pgeom.certificates.certificate import Certificate
from pgeom.types import Generator

if TYPE_CHECKING:
    from pgeom.certificates.ranges import RangeCertificate

__all__ = ["Certificate", "certify", "certify_range"]


def certify(F: Generator, K: int) -> Certificate:
    """Prove or disprove that F is convex on the simplex of K classes, and bound its curvature.

    What is proved is about the real function that F's jaxpr denotes: literals are the floats that
    they are, and arithmetic is exact. F is traced in float64, and its float32 jaxpr must be the
    same but for rounded literals, or nothing is proved.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.

    Returns:
      A `Certificate`, which `python -m proofs_numeric.checker` verifies once it is written.

    Raises:
      ModuleNotFoundError: without python-flint, which the extra `certify` installs.
    """
    checks.check_num_classes(K)
    _require_flint("certify")
    from pgeom.certificates.prover import prove

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
    checks.check_num_classes(K)
    _require_flint("certify_range")
    from pgeom.certificates.ranges import prove_range

    return prove_range(F, int(K), gap=gap)


def _require_flint(what: str) -> None:
    if message := extras.missing(what, "certify"):
        raise ModuleNotFoundError(message, name="flint")

"""Proofs of convexity, curvature and ranges by ball arithmetic, and their verification.

The door is `certify` and `certify_range`, which write documents, and `verify`, which judges one by
`proofs_numeric.checker` and so without any of this code. `certify` is a public name of pgeom, and
that is why the room is not called so: a package `pgeom.certify` would take the function's place as
soon as a file of it is imported.

In the order of reading: `expression` (real functions on the simplex) and `algebra` (identities);
`operations` and `reader` (a jaxpr as an expression), `rewriting` (the form that is proved);
`arithmetics` (intervals, balls and floats) and `matrices`; `ridges` and `rules` (what is convex,
and why), `hessians` (bounds on cells), `disproofs`; `prover` and `ranges`, which use them all, and
`certificate`, the document. The room may import types, checks, the simplex, the tracing of
functions, and the form of a witness from the diagnosis. python-flint is imported when something is
to be proved.

Names that mean the same everywhere: x, y and z are nodes of an expression and `g` is its graph, K
is the number of classes, c and r are rational numbers (flint's `fmpq`), p and d are points and
directions as tuples of them, u = w·p is the coordinate along a direction, and `sign` is −1 where
something is shown of −F.

>>> import jax.numpy as jnp
>>> found = certify(lambda p: jnp.sum(p**2), 3)
>>> found.convex, found.m_tangent
('proved', Fraction(2, 1))
>>> verify(found.document)
"convex proved, strictly proved, bounds {'m_tangent': 2, 'M_tangent': 2}"
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pgeom import checks, extras
from pgeom.certificates.certificate import Certificate
from pgeom.types import Generator

if TYPE_CHECKING:
    from pgeom.certificates.ranges import RangeCertificate

__all__ = ["Certificate", "certify", "certify_range", "verify"]


def certify(F: Generator, K: int) -> Certificate:
    """Prove or disprove that F is convex on the simplex of K classes, and bound its curvature.

    What is proved is about the real function that F's jaxpr denotes: literals are the floats that
    they are, and arithmetic is exact. F is traced in float64, and its float32 jaxpr must be the
    same but for rounded literals, or nothing is proved.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.

    Returns:
      A `Certificate`, which `verify` judges, or `python -m proofs_numeric.checker` once it is
      written.

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
      A `RangeCertificate`, which `verify` judges, or `python -m proofs_numeric.checker` once it is
      written.

    Raises:
      ValueError: if F uses an operation that cannot be read.
      ModuleNotFoundError: without python-flint, which the extra `certify` installs.
    """
    checks.check_num_classes(K)
    _require_flint("certify_range")
    from pgeom.certificates.ranges import prove_range

    return prove_range(F, int(K), gap=gap)


def verify(document: Mapping[str, Any]) -> str:
    """What a certificate proves, in one line, by a checker that shares no code with the prover.

    Args:
      document: that of a `Certificate` or a `RangeCertificate`, or what its file holds as JSON.

    Raises:
      ArithmeticError: if the document does not prove one of its claims.
      ModuleNotFoundError: without python-flint, which the extra `certify` installs.
    """
    _require_flint("verify")
    from proofs_numeric import checker

    return checker.verify(document)


def _require_flint(what: str) -> None:
    if message := extras.missing(what, "certify"):
        raise ModuleNotFoundError(message, name="flint")

"""Certificates: verdicts about F, bounds, and all that is needed to check them without JAX.

>>> sealed = seal({"K": 3, "m_tangent": Fraction(1, 3)})
>>> sealed["m_tangent"], len(sealed["digest"])
('1/3', 64)
"""

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from pgeom.diagnosis.search import Witness

Verdict: TypeAlias = Literal["proved", "disproved", "unknown"]
FORMAT = "pgeom certificate 3"


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is proved about F on K classes.

    It is about the real function that F's jaxpr denotes: literals are the floats that they are, and
    arithmetic is exact. F is convex on the simplex if it is so where all p_k > 0 and its values on
    the boundary are limits from inside, which is how "proved" is to be read.

    Attributes:
      K: the number of classes.
      convex, strictly_convex: "proved", "disproved" or "unknown".
      m_tangent: a proved lower bound on the curvature along tangents, None if there is none.
      M_tangent: a proved upper bound, None if there is none.
      method: "rules", "structured Hessian", "bisection", "disproof", or "none".
      witness: points η and p with D_F(η, p) < 0 if F is not convex, = 0 if not strictly; else None.
      reason: why a verdict is unknown, in one line; empty if none is.
      seconds: the time taken.
      document: the certificate as it is written.
    """

    K: int
    convex: Verdict
    strictly_convex: Verdict
    m_tangent: Fraction | None
    M_tangent: Fraction | None
    method: str
    witness: Witness | None
    reason: str
    seconds: float
    document: dict[str, Any]

    def write(self, path: str | Path):
        """Write the certificate as JSON, for `python -m proofs_numeric.checker PATH`."""
        write_document(self.document, path)

    def __repr__(self) -> str:
        bounds = (self.m_tangent, self.M_tangent)
        m, M = ("?" if bound is None else f"{float(bound):.6g}" for bound in bounds)
        verdicts = f"convex {self.convex}, strictly {self.strictly_convex} by {self.method}"
        reason = f"; {self.reason}" if self.reason else ""
        return f"<F on {self.K} classes: {verdicts}; m_T ≥ {m}, M_T ≤ {M}{reason}>"


def write_document(document: dict[str, Any], path: str | Path):
    """Write a certificate as JSON."""
    Path(path).write_text(json.dumps(document, ensure_ascii=False) + "\n", "utf-8")


def seal(document: dict[str, Any]) -> dict[str, Any]:
    """The document with rationals as text and a digest of everything in it."""
    plain = json.loads(json.dumps({"format": FORMAT, **document}, default=str))
    text = json.dumps(plain, sort_keys=True)
    return {**plain, "digest": hashlib.sha256(text.encode()).hexdigest()}


ROUNDED = 1e-6  # how far a constant may be from itself in float32, relative to it
VANISHING = 1e-37  # what may be zero in float32


def jaxpr_hash(jaxpr) -> str:
    """The SHA-256 of a closed jaxpr, in hexadecimal."""
    digest = hashlib.sha256()
    for row in _rows(jaxpr.jaxpr, jaxpr.consts):
        for x in row:
            text = f"{x.dtype}{x.shape}{x.tobytes()}" if isinstance(x, np.ndarray) else repr(x)
            digest.update(f"{text};".encode())
    return digest.hexdigest()


def same_but_for_precision(double, single):
    """Whether a closed jaxpr of float64 numbers is that of float32 numbers but for rounding.

    Conversions between real numbers and between integers are not compared.
    """
    rows, others = (list(_rows(one.jaxpr, one.consts)) for one in (double, single))
    pairs = zip(rows, others, strict=False)
    alike = (len(x) == len(y) and all(map(_equal, x, y)) for x, y in pairs)
    return len(rows) == len(others) and all(alike)


def _rows(jaxpr, consts):
    """The operations in order, each with its arguments, by number or by value, and parameters."""
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_constant, consts), strict=True))
    known |= {var: i for i, var in enumerate(jaxpr.invars)}
    count = len(jaxpr.invars)

    def value(atom):
        return _constant(atom.val) if isinstance(atom, core.Literal) else known[atom]

    for eqn in jaxpr.eqns:
        args = [value(atom) for atom in eqn.invars]
        if eqn.primitive.name == "convert_element_type" and _kind(eqn.invars) == _kind(eqn.outvars):
            known[eqn.outvars[0]] = args[0]
            continue
        for var in eqn.outvars:
            known[var] = count = count + 1
        yield eqn.primitive.name, *args, *(var.aval.shape for var in eqn.outvars)
        for key in sorted(eqn.params):
            yield from _parameter_rows(key, eqn.params[key])
    yield tuple(map(value, jaxpr.outvars))


def _constant(value):
    """A constant as an array of NumPy, or as text if it is none, as the key of random numbers."""
    is_key = jnp.issubdtype(jnp.result_type(value), jax.dtypes.prng_key)
    return str(value) if is_key else np.asarray(value)


def _kind(atoms):
    """Whether the first of them is real, an integer or a truth value."""
    return np.dtype(atoms[0].aval.dtype).kind


def _parameter_rows(key, value):
    inner = getattr(value, "jaxpr", value)
    if hasattr(inner, "eqns"):
        yield from _rows(inner, getattr(value, "consts", []))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _parameter_rows(key, one)
    elif isinstance(value, (int, float, str, type(None))) and key != "name":
        yield key, value


def _equal(x, y):
    arrays = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    if arrays and x.dtype.kind == "f" and x.shape == y.shape:
        return np.allclose(x, y, rtol=ROUNDED, atol=VANISHING, equal_nan=True)
    return type(x) is type(y) and np.array_equal(x, y)

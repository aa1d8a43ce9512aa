"""Fingerprints: blind to names, and to nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.engine.identity import digest, fingerprint

X = jax.ShapeDtypeStruct((3,), jnp.float32)
TABLE = np.arange(3, dtype=np.float32)


def original(x):
    weights = jnp.exp(x) * TABLE
    return jax.nn.logsumexp(weights) + 0.5


def renamed(value):
    """The same, with another name for everything, and a comment."""
    w = jnp.exp(value) * TABLE  # a table of weights
    return jax.nn.logsumexp(w) + 0.5


SAME = {"renamed": renamed, "wrapped": lambda x: original(x)}
OTHERS = {
    "constant": lambda x: jax.nn.logsumexp(jnp.exp(x) * TABLE) + 0.25,
    "table": lambda x: jax.nn.logsumexp(jnp.exp(x) * (TABLE + 1)) + 0.5,
    "operation": lambda x: jax.nn.logsumexp(jnp.expm1(x) * TABLE) + 0.5,
    "argument order": lambda x: 0.5 - jax.nn.logsumexp(jnp.exp(x) * TABLE),
    "inside a branch": lambda x: jax.lax.cond(x[0] > 0, original, lambda x: original(x) + 1, x),
}


@pytest.mark.parametrize("name", SAME)
def test_names_and_comments_do_not_count(name):
    assert fingerprint(SAME[name], X) == fingerprint(original, X)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_computed_counts(name):
    assert fingerprint(OTHERS[name], X) != fingerprint(original, X)


def test_a_jitted_function_may_be_called_anything():
    def first(x):
        return x + 1

    def second(x):
        return x + 1

    outer = [lambda x, f=f: jax.jit(f)(x) * 2 for f in (first, second)]
    assert fingerprint(outer[0], X) == fingerprint(outer[1], X)


def test_a_branch_deep_inside_counts():
    def deep(constant):
        return lambda x: jax.lax.scan(lambda c, _: (c * constant, None), x, None, length=3)[0]

    assert fingerprint(deep(2.0), X) != fingerprint(deep(2.5), X)


def test_a_rule_for_derivatives_counts_where_a_gradient_is_taken():
    def with_rule(factor):
        @jax.custom_jvp
        def f(x):
            return jnp.sum(x)

        f.defjvp(lambda p, t: (f(*p), factor * jnp.sum(t[0])))
        return f

    one, two = with_rule(1.0), with_rule(2.0)
    assert fingerprint(jax.grad(one), X) != fingerprint(jax.grad(two), X)
    assert fingerprint(jax.grad(one), X) == fingerprint(jax.grad(with_rule(1.0)), X)


def test_the_precision_counts():
    X64 = jax.ShapeDtypeStruct((3,), jnp.float16)
    assert fingerprint(original, X) != fingerprint(original, X64)


def test_digests_of_values():
    assert digest({"a": 1, "b": 2.0}) == digest({"b": 2.0, "a": 1})
    values = [1, 1.0, "1", True, None, (1,), [1, 2], {"1": 1}, np.float32(1), np.float64(1), b"1"]
    values += [np.zeros(2), np.zeros((2, 1)), np.ones(2)]
    assert len({digest(value) for value in values}) == len(values)
    assert digest("ab", "c") != digest("a", "bc")

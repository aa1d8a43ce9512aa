"""What is no function of p in JAX, or reads beyond its end, is named in one line at every door."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.frontend.errors import UsageError
from pgeom.losses.own import require_generator

P, Y = jnp.array([[0.5, 0.5]]), jnp.array([0])
DOORS = {
    "score": lambda F: pgeom.bregman_score(F)(P, Y),
    "expected score": lambda F: pgeom.bregman_score(F)(P, P),
    "divergence": lambda F: pgeom.bregman_divergence(F)(P, P),
    "gradient of a loss": lambda F: jax.grad(
        lambda z: jnp.sum(pgeom.on_logits(pgeom.bregman_score(F))(z, Y))
    )(P),
    "diagnosis": lambda F: pgeom.diagnose(F, 2),
    "check": lambda F: pgeom.check_generator(F, 2),
    "bound": lambda F: pgeom.bounds.loss_range(F, 2),
    "proof": lambda F: pgeom.certify(F, 2),
    "link": lambda F: pgeom.canonical_link(F)(P),
    "inverse link": lambda F: pgeom.inverse_link(F)(P),
    "Fenchel-Young loss": lambda F: pgeom.fenchel_young(F)(P, Y),
    "command line": lambda F: require_generator(F, 2, "F"),
}


def third(p):
    return p[0] ** 2 + p[2] ** 2


def over_three(p):
    return jax.lax.fori_loop(0, 3, lambda k, total: total + p[k] ** 2, 0 * p[0])


def scanned(p):
    return jax.lax.scan(lambda total, k: (total + p[k] ** 2, None), 0 * p[0], jnp.arange(3))[0]


BEYOND = {
    "beyond the end": (third, "p[2], but p has 2 entries"),
    "before the start": (lambda p: p[-3] ** 2, "p[-3], but p has 2 entries"),
    "one of several": (lambda p: jnp.sum(p[np.array([0, 2])] ** 2), "p[2]"),
    "an array of JAX": (lambda p: jnp.sum(p[jnp.array([0, -4])] ** 2), "p[-4]"),
    "take": (lambda p: jnp.take(p, 2) ** 2, "p[2]"),
    "set": (lambda p: p.at[2].set(0.0) @ p, "p[2]"),
    "comprehension": (lambda p: sum(p[k] ** 2 for k in range(3)), "p[2]"),
    "loop": (over_three, "p[2]"),
    "scan": (scanned, "p[2]"),
    "mapped": (lambda p: jnp.sum(jax.vmap(lambda k: p[k] ** 2)(jnp.arange(3))), "p[2]"),
    "jitted": (jax.jit(third), "p[2]"),
    "checkpoint": (jax.checkpoint(third), "p[2]"),
    "slice": (lambda p: jnp.sum(jax.lax.dynamic_slice(p, (1,), (2,)) ** 2), "p[2]"),
    "another array": (
        lambda p: (3 * p)[2] ** 2,
        "entry 2 of an array that has 2 entries",
    ),
    "matrix": (lambda p: jnp.outer(p, p)[1, 2], "entry 2 of an array that has 2"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_an_index_beyond_the_end_is_refused(name):
    F, says = BEYOND[name]
    with pytest.raises(ValueError) as error:
        pgeom.bregman_score(F)(P, Y)
    assert str(error.value).startswith("F reads ") and says in str(error.value)


@pytest.mark.parametrize("door", DOORS)
def test_it_is_refused_at_every_door(door):
    with pytest.raises(ValueError, match=r"^F reads p\[2\], but p has 2 entries"):
        DOORS[door](third)


WITHIN = {
    "ends": lambda p: p[0] ** 2 + p[-1] ** 2 + p[jnp.array([-2, 1])] @ p,
    "an empty rest": lambda p: p @ p + jnp.sum(p[2:]),
    "filled on purpose": lambda p: p @ p + p.at[2].get(mode="fill", fill_value=0.0),
    "the largest": lambda p: p @ p + p[jnp.argmax(p)],
    "sorted": lambda p: p @ p + jnp.sort(p)[-1] + p[jnp.argsort(p)][0],
    "loop": lambda p: jax.lax.fori_loop(0, 2, lambda k, total: total + p[k] ** 2, 0 * p[0]),
}


@pytest.mark.parametrize("name", WITHIN)
def test_what_is_within_range_is_not(name):
    assert np.isfinite(pgeom.bregman_score(WITHIN[name])(P, Y))


UNTRACEABLE = {
    "NumPy": lambda p: jnp.sum(np.log(p)),
    "math": lambda p: math.log(p[0]),
    "float": lambda p: float(p[0]),
    "if": lambda p: p[0] if p[0] > 0.5 else p[1],
    "an array of NumPy": lambda p: np.max(np.asarray(p)),
    "a product of NumPy": lambda p: np.dot(np.eye(2), p) @ p,
    "integer": lambda p: p[int(p[0])],
    "all": lambda p: p[0] if all(x > 0 for x in p) else p[1],
    "boolean index": lambda p: jnp.sum(p[p > 0.3]),
    "jitted": jax.jit(lambda p: jnp.sum(np.log(p))),
}
NO_SCALAR = {
    "Python integer": (lambda p: 1, "got int"),
    "list": (lambda p: [jnp.sum(p)], "got list"),
    "nothing": (lambda p: None, "got NoneType"),
    "one entry": (lambda p: p[:1], "(1,)"),
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_what_jax_cannot_trace_is_told_to_use_jax_numpy(name):
    with pytest.raises(TypeError) as error:
        pgeom.bregman_score(UNTRACEABLE[name])(P, Y)
    text = str(error.value)
    assert "use jax.numpy" in text and "\n" not in text
    assert "of test_strange_functions.py)" in text
    assert error.value.__suppress_context__


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("F", [UNTRACEABLE["NumPy"], UNTRACEABLE["if"]], ids=["NumPy", "if"])
def test_so_at_every_door(door, F):
    with pytest.raises((TypeError, UsageError), match=r"use jax\.numpy") as error:
        DOORS[door](F)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", NO_SCALAR)
def test_what_is_no_scalar_is_named(name, unchecked_annotations):
    F, says = NO_SCALAR[name]
    with pytest.raises((TypeError, ValueError)) as error:
        pgeom.bregman_score(F)(P, Y)
    assert str(error.value).startswith("F must return a") and says in str(error.value)

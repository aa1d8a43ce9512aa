"""What is no function of p in JAX, or reads beyond its end, is named in one line at every door."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.losses.own import require_generator, require_loss

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
    "Hessian": lambda F: pgeom.curvature.hessian(F)(P),
    "curvature": lambda F: pgeom.curvature.mean_curvature(F, 2, key=jax.random.key(0)),
    "command line": lambda F: require_generator(F, 2, "F"),
}


def third(p):
    return p[0] ** 2 + p[2] ** 2


BEYOND = {
    "beyond the end": (third, "p[2], but p has 2 entries"),
    "before the start": (lambda p: p[-3] ** 2, "p[-3], but p has 2 entries"),
    "one of several": (lambda p: jnp.sum(p[np.array([0, 2])] ** 2), "p[2]"),
    "an array of JAX": (lambda p: jnp.sum(p[jnp.array([0, -4])] ** 2), "p[-4]"),
    "take": (lambda p: jnp.take(p, 2) ** 2, "p[2]"),
    "comprehension": (lambda p: sum(p[k] ** 2 for k in range(3)), "p[2]"),
    "mapped": (lambda p: jnp.sum(jax.vmap(lambda k: p[k] ** 2)(jnp.arange(3))), "p[2]"),
    "jitted": (jax.jit(third), "p[2]"),
    "checkpoint": (jax.checkpoint(third), "p[2]"),
    "slice": (lambda p: jnp.sum(jax.lax.dynamic_slice(p, (1,), (2,)) ** 2), "p[2]"),
    "another array": (
        lambda p: (3 * p)[2] ** 2,
        "entry 2 of an array that has 2 entries",
    ),
    "matrix": (lambda p: jnp.outer(p, p)[1, 2], "entry 2 of an array that has 2"),
    "far before the start": (lambda p: p[-4] ** 2, "p[-4], but p has 2 entries"),
    "get": (lambda p: p.at[5].get() ** 2, "p[5]"),
    "a dynamic index": (lambda p: jax.lax.dynamic_index_in_dim(p, 2)[0] ** 2, "p[2]"),
    "take along": (lambda p: jnp.take_along_axis(p, jnp.array([2]), 0)[0] ** 2, "p[2]"),
    "a remainder": (lambda p: p[jnp.asarray(5) % 3] ** 2, "p[2]"),
    "a quotient": (lambda p: p[jnp.asarray(5) // 2] ** 2, "p[2]"),
    "a negative": (lambda p: p[-jnp.asarray(3)] ** 2, "p[-3]"),
    "the larger": (lambda p: p[jnp.maximum(2, jnp.asarray(1))] ** 2, "p[2]"),
    "a running sum": (lambda p: jnp.sum(p[jnp.cumsum(jnp.ones(2, int))] ** 2), "p[2]"),
    "rolled": (lambda p: jnp.sum(p[jnp.roll(jnp.arange(3), 1)] ** 2), "p[2]"),
    "reversed": (lambda p: jnp.sum(p[jnp.arange(3)[::-1]] ** 2), "p[2]"),
    "an order": (lambda p: jnp.sum(p[jnp.argsort(jnp.array([3, 1, 2]))] ** 2), "p[2]"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_an_index_beyond_the_end_is_refused(name):
    F, says = BEYOND[name]
    with pytest.raises(ValueError) as error:
        pgeom.bregman_score(F)(P, Y)
    assert str(error.value).startswith("F reads ") and says in str(error.value)


@pytest.mark.parametrize("door", DOORS)
def test_it_is_refused_at_every_door(door):
    with pytest.raises(ValueError, match=r"(^|: )F reads p\[2\], but p has 2 entries"):
        DOORS[door](third)


WITHIN = {
    "the other branch": lambda p: jax.lax.cond(p.size > 2, third, lambda p: p @ p, p),
    "computed": lambda p: jnp.sum(p[jnp.cumsum(jnp.ones(2, int)) - 1] ** 2),
    "wrapped on purpose": lambda p: p @ p + jnp.take(p, 2, mode="wrap"),
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
    "item": lambda p: p[0].item() ** 2,
    "tolist": lambda p: sum(x**2 for x in p.tolist()),
    "range": lambda p: sum(p[k] for k in range(p[0])),
    "an index of a list": lambda p: [1.0, 2.0][p[0]] * p[0],
    "a text": lambda p: float(f"{p[0]:.3f}"),
    "a key": lambda p: {0.5: p[0]}[p[0]],
    "a method of PyTorch": lambda p: p.detach() @ p,
    "Python's max": lambda p: max(p),
    "while": lambda p: next(x for x in p if x > 0.1),
    "and": lambda p: jnp.where(p[0] > 0.1 and p[1] > 0.1, p[0], p[1]),
}
UNTRACEABLE_PARTS = {
    "NumPy": lambda x: x * np.log(x),
    "math": lambda x: x * math.log(x),
    "float": lambda x: float(x) ** 2,
    "item": lambda x: x.item() ** 2,
    "if": lambda x: x**2 if x > 0.1 else x,
}
UNTRACEABLE_LOSSES = {
    "NumPy": lambda z, y: jnp.sum(np.exp(-z), axis=1),
    "float": lambda z, y: float(z[0, 0]) * jnp.ones(len(y)),
    "if": lambda z, y: z[:, 0] if z[0, 0] > 0 else z[:, 1],
    "a label": lambda z, y: jnp.stack([-z[i, int(label)] for i, label in enumerate(y)]),
    "labels of NumPy": lambda z, y: -jnp.sum(z * np.eye(2)[np.asarray(y)], axis=1),
    "boolean index": lambda z, y: z[y == 0][:, 0],
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


@pytest.mark.parametrize("name", UNTRACEABLE_PARTS)
def test_so_in_the_function_of_one_number_of_a_separable_one(name):
    F = pgeom.generators.separable(UNTRACEABLE_PARTS[name])
    for door in (F, "score", "link", "Fenchel-Young loss", "diagnosis"):
        with pytest.raises(TypeError, match=r"use jax\.numpy") as error:
            DOORS[door](F) if isinstance(door, str) else door(P[0])
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", UNTRACEABLE_LOSSES)
def test_so_in_a_loss(name):
    with pytest.raises(ValueError, match=r"^mine raised .* use jax\.numpy") as error:
        require_loss(UNTRACEABLE_LOSSES[name], 2, "mine")
    assert "\n" not in str(error.value)


def test_a_loss_of_a_class_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"^mine reads entry 2 of an array that has 2 entries"):
        require_loss(lambda z, y: z[:, 2] - z[jnp.arange(len(y)), y], 2, "mine")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("F", [UNTRACEABLE["NumPy"], UNTRACEABLE["if"]], ids=["NumPy", "if"])
def test_so_at_every_door(door, F):
    with pytest.raises((TypeError, ValueError), match=r"use jax\.numpy") as error:
        DOORS[door](F)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", NO_SCALAR)
def test_what_is_no_scalar_is_named(name, unchecked_annotations):
    F, says = NO_SCALAR[name]
    with pytest.raises((TypeError, ValueError)) as error:
        pgeom.bregman_score(F)(P, Y)
    assert str(error.value).startswith("F must return a") and says in str(error.value)

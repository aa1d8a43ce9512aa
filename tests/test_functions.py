"""What is no function of p in JAX, or reads beyond its end, is named in one line at every door."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

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


TABLE, KEY = jnp.array([1.0, 2.0]), jax.random.key(0)
BEYOND = {
    "beyond the end": (third, "p[2], but p has 2 entries"),
    "before the start": (lambda p: p[-3] ** 2, "p[-3], but p has 2 entries"),
    "take": (lambda p: jnp.take(p, 2) ** 2, "p[2]"),
    "mapped": (lambda p: jnp.sum(jax.vmap(lambda k: p[k] ** 2)(jnp.arange(3))), "p[2]"),
    "jitted": (jax.jit(third), "p[2]"),
    "matrix": (lambda p: jnp.outer(p, p)[1, 2], "entry 2 of an array that has 2 entries"),
    "set": (lambda p: p.at[2].set(0.0) @ p, "p[2]"),
    "loop": (
        lambda p: jax.lax.fori_loop(0, 3, lambda k, total: total + p[k] ** 2, 0 * p[0]),
        "p[2]",
    ),
    "a branch": (lambda p: jax.lax.switch(1, [lambda p: p @ p, third], p), "p[2]"),
    "a checkpoint": (jax.checkpoint(third), "p[2]"),
    "a loop of checkpoints": (
        lambda p: jnp.sum(jax.lax.map(jax.checkpoint(lambda k: p[k] ** 2), jnp.arange(3))),
        "p[2]",
    ),
    "a table of constants": (lambda p: TABLE[2] * p @ p, "p[2], but p has 2 entries"),
    "a table made there": (lambda p: jnp.arange(2.0)[2] * p @ p, "p[2]"),
    "beside random numbers": (lambda p: third(p) + 0 * jax.random.normal(KEY), "p[2]"),
    "a running sum": (lambda p: jnp.sum(p[jnp.cumsum(jnp.ones(2, int))] ** 2), "p[2]"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_an_index_beyond_the_end_is_refused(name):
    F, says = BEYOND[name]
    with pytest.raises(ValueError) as error:
        pgeom.bregman_score(F)(P, Y)
    assert str(error.value).startswith("F reads ") and says in str(error.value)


def test_it_is_refused_on_several_devices():
    rows = PartitionSpec("rows")
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,))
    score = jax.shard_map(
        pgeom.bregman_score(third), mesh=mesh, in_specs=(rows, rows), out_specs=rows
    )
    with pytest.raises(ValueError, match=r"F reads p\[2\], but p has 2 entries"):
        score(P, Y)


@pytest.mark.parametrize("door", DOORS)
def test_it_is_refused_at_every_door(door):
    with pytest.raises(ValueError, match=r"(^|: )F reads p\[2\], but p has 2 entries"):
        DOORS[door](third)


WITHIN = {
    "the other branch": lambda p: jax.lax.cond(p.size > 2, third, lambda p: p @ p, p),
    "computed": lambda p: jnp.sum(p[jnp.cumsum(jnp.ones(2, int)) - 1] ** 2),
    "ends": lambda p: p[0] ** 2 + p[-1] ** 2 + p[jnp.array([-2, 1])] @ p,
    "an empty rest": lambda p: p @ p + jnp.sum(p[2:]),
    "filled on purpose": lambda p: p @ p + p.at[2].get(mode="fill", fill_value=0.0),
}


@pytest.mark.parametrize("name", WITHIN)
def test_what_is_within_range_is_not(name):
    assert np.isfinite(pgeom.bregman_score(WITHIN[name])(P, Y))


UNTRACEABLE = {
    "NumPy": lambda p: jnp.sum(np.log(p)),
    "math": lambda p: math.log(p[0]),
    "float": lambda p: float(p[0]),
    "if": lambda p: p[0] if p[0] > 0.5 else p[1],
    "jitted": jax.jit(lambda p: jnp.sum(np.log(p))),
    "item": lambda p: p[0].item() ** 2,
    "Python's max": lambda p: max(p),
}
UNTRACEABLE_PARTS = {
    "NumPy": lambda x: x * np.log(x),
    "float": lambda x: float(x) ** 2,
    "if": lambda x: x**2 if x > 0.1 else x,
}
UNTRACEABLE_LOSSES = {
    "NumPy": lambda z, y: jnp.sum(np.exp(-z), axis=1),
    "float": lambda z, y: float(z[0, 0]) * jnp.ones(len(y)),
    "if": lambda z, y: z[:, 0] if z[0, 0] > 0 else z[:, 1],
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_what_jax_cannot_trace_is_told_to_use_jax_numpy(name):
    with pytest.raises(TypeError) as error:
        pgeom.bregman_score(UNTRACEABLE[name])(P, Y)
    text = str(error.value)
    assert "use jax.numpy" in text and "\n" not in text
    assert "of test_functions.py)" in text
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


@pytest.mark.parametrize("door", DOORS)
def test_so_at_every_door(door):
    with pytest.raises((TypeError, ValueError), match=r"use jax\.numpy") as error:
        DOORS[door](UNTRACEABLE["NumPy"])
    assert "\n" not in str(error.value)

"""Every model keeps the promises that the trainer relies on; a new one is tested by its name."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.models.architectures import ARCHITECTURES

N, IMAGE, D, K = 7, (8, 8), 64, 10


@pytest.fixture(params=ARCHITECTURES)
def model(request):
    return ARCHITECTURES[request.param](IMAGE, K)


def some_examples(model):
    rng = np.random.default_rng(0)
    return model.initial(rng), rng.uniform(size=(N, D)).astype(np.float32)


def test_parameters_are_one_vector_drawn_by_the_host(model):
    first, again, other = (model.initial(np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first.shape == (model.size,) and first.dtype == np.float32
    assert isinstance(first, np.ndarray)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_logits_have_the_shape_of_their_examples(model):
    w, x = model.initial(np.random.default_rng(0)), jnp.ones((N, D))
    masks = model.masks(jax.random.key(0), N)
    assert model.logits(w, x).shape == model.logits(w, x, masks).shape == (N, K)


def test_an_example_does_not_depend_on_its_batch(model):
    w, x = some_examples(model)
    masks = model.masks(jax.random.key(0), N)
    whole = model.logits(w, x, masks)
    part = model.logits(w, x[2:5], jax.tree.map(lambda mask: mask[2:5], masks))
    np.testing.assert_allclose(part, whole[2:5], rtol=1e-4, atol=1e-5)


def test_masks_have_a_row_per_example_and_matter_if_there_are_any(model):
    w, x = some_examples(model)
    masks = model.masks(jax.random.key(0), N)
    leaves = jax.tree.leaves(masks)
    assert all(leaf.shape[0] == N for leaf in leaves)
    same = np.allclose(model.logits(w, x, masks), model.logits(w, x))
    assert same == (not leaves)


def test_every_input_matters(model):
    w, x = some_examples(model)
    slopes = jax.grad(lambda x: jnp.sum(jnp.square(model.logits(w, x))))(x)
    chex.assert_tree_all_finite(slopes)
    assert np.all(np.any(slopes != 0, axis=0))


def test_it_says_what_it_is_made_for(model):
    assert (model.inputs, model.classes) == (D, K)
    assert model.activations >= D

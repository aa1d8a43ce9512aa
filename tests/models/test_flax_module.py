"""A Flax module of a user's own keeps the promises of a model, or is refused with the reason."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.models.flax_module import FlaxModel, construct, refusal
from pgeom.models.model import Model
from tests.models import modules

N, D, K = 7, 5, 3


@pytest.fixture(autouse=True, scope="module")
def promotion_as_flax_needs_it():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def make(module, shape=(D,), classes=K):
    return FlaxModel(construct(module, classes), shape, classes)


def examples(model):
    rng = np.random.default_rng(0)
    return model.initial(rng), rng.normal(size=(N, model.inputs)).astype(np.float32)


GOOD = {
    "told the classes": make(modules.Net),
    "an instance": make(modules.instance),
    "images": make(modules.Convolution, (8, 8)),
    "half precision": make(modules.HalfPrecision),
}


@pytest.mark.parametrize("model", GOOD.values(), ids=GOOD.keys())
def test_a_good_module_is_a_model(model):
    assert isinstance(model, Model) and refusal(model) is None
    w, x = examples(model)
    assert w.shape == (model.size,) and w.dtype == np.float32 and isinstance(w, np.ndarray)
    masks = model.masks(jax.random.key(0), N)
    for logits in (model.logits(w, x), model.logits(w, x, masks)):
        assert logits.shape == (N, K) and logits.dtype == jnp.float32
    assert model.activations > model.inputs


def test_logits_are_the_modules():
    model = make(modules.Convolution, (8, 8))
    w, x = examples(model)
    words = np.random.default_rng(0).integers(2**32, size=2, dtype=np.uint32)
    images = x.reshape(N, 8, 8)
    variables = model.module.init(jax.random.wrap_key_data(jnp.asarray(words)), images, False)
    expected = model.module.apply(variables, images, False)
    np.testing.assert_allclose(model.logits(w, x), expected, rtol=1e-5, atol=1e-6)


def test_initial_parameters_belong_to_the_hosts_stream():
    model = make(modules.Net)
    first, again, other = (model.initial(np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_batch_has_the_key_of_its_first_example():
    model = make(modules.Net)
    w, x = examples(model)
    keys = model.masks(jax.random.key(0), N)
    assert keys.shape == (N, 2) and keys.dtype == jnp.uint32
    assert len(np.unique(np.asarray(keys), axis=0)) == N
    batch = model.logits(w, x[2:5], keys[2:5])
    key = jax.random.wrap_key_data(keys[2])
    variables = {"params": model._unravel(jnp.asarray(w))}
    expected = model.module.apply(variables, x[2:5], True, rngs={"dropout": key})
    np.testing.assert_allclose(batch, expected, rtol=1e-5)
    assert not np.allclose(batch, model.logits(w, x[2:5], keys[3:6]))  # another key
    assert not np.allclose(batch, model.logits(w, x[2:5]))


def test_equal_modules_are_one_key_of_a_cache():
    same = {make(modules.Net), make(modules.Net), make(modules.Net(K)), make(modules.Net, (D,), K)}
    assert len(same) == 1
    assert len(same | {make(modules.Net(K, 0.1)), make(modules.Net, (D + 1,))}) == 3


def test_a_class_is_told_the_classes_by_either_name_and_nothing_else():
    assert construct(modules.Net, 4).classes == construct(modules.Convolution, 4).num_classes == 4
    assert construct(modules.instance, 4) is modules.instance
    assert construct(modules.Empty, 4) == modules.Empty()


BAD = [
    (modules.FewerLogits, r"must return logits \[3, 3\] for x\[3, 5\], got float32\[3, 2\]"),
    (modules.OnlyWrongInTraining, r"must return logits .* got float32\[3\]"),
    (modules.TwoResults, "must return logits .* got tuple"),
    (modules.Normalised, "batch statistics are not supported"),
    (modules.Counting, "must keep nothing but parameters, got the collection 'counts'"),
    (modules.Empty, "must have parameters, got none"),
    (modules.HalfParameters, "must have parameters of float32, got float16"),
    (modules.unhashable, "must have hashable fields"),
]


@pytest.mark.parametrize(("module", "reason"), BAD, ids=[reason[:30] for _, reason in BAD])
def test_a_bad_module_is_refused_with_the_reason(module, reason):
    assert re.match(reason, refusal(make(module)))


@pytest.mark.parametrize(
    "module", [modules.Raising, modules.WithoutTrain], ids=["raises", "x only"]
)
def test_an_error_of_the_module_is_its_own(module):
    with pytest.raises((RuntimeError, TypeError)):
        refusal(make(module))

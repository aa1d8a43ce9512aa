"""A Flax module of a user's own keeps the promises of a model, or is refused with the reason."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.models.flax_module import wrap_module
from pgeom.models.model import Model
from tests.models import modules

N, D, K = 7, 5, 3


@pytest.fixture(autouse=True, scope="module")
def promotion_as_flax_needs_it():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def make(module, shape=(D,), classes=K):
    return wrap_module(module, shape, classes)


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
    assert isinstance(model, Model)
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


def test_a_batch_has_the_key_of_its_first_example():
    model = make(modules.Net)
    w, x = examples(model)
    keys = model.masks(jax.random.key(0), N)
    assert keys.shape == (N, 2) and keys.dtype == jnp.uint32
    assert len(np.unique(np.asarray(keys), axis=0)) == N
    batch = model.logits(w, x[2:5], keys[2:5])
    key = jax.random.wrap_key_data(keys[2])
    variables = {"params": model._flat[1](jnp.asarray(w))}
    expected = model.module.apply(variables, x[2:5], True, rngs={"dropout": key})
    np.testing.assert_allclose(batch, expected, rtol=1e-5)
    assert not np.allclose(batch, model.logits(w, x[2:5], keys[3:6]))  # another key
    assert not np.allclose(batch, model.logits(w, x[2:5]))


BAD = [
    (modules.FewerLogits, r"must return logits \[3, 3\] for 3 examples, got \(3, 2\)"),
    (modules.Normalised, "batch statistics are not supported: use LayerNorm"),
    (modules.HalfParameters, "must have parameters of float32, got float16"),
    (
        modules.Raising,
        r"Raising raised RuntimeError: no luck; it is called as module",
    ),
    (modules.WithoutTrain, "WithoutTrain raised TypeError"),
]


@pytest.mark.parametrize(("module", "reason"), BAD, ids=[reason[:30] for _, reason in BAD])
def test_a_bad_module_is_refused_with_the_reason(module, reason):
    with pytest.raises(ValueError, match=reason) as error:
        make(module)
    assert "\n" not in str(error.value)

"""A Flax module of a user's own as a model.

The module is called as `module(x, train)`, with x of the shape of the images, if the examples are
images, or `[n, d]`; it returns logits `[n, K]`. Dropout draws from the stream "dropout".

>>> class Net(nn.Module):
...     classes: int
...     @nn.compact
...     def __call__(self, x, train):
...         return nn.Dense(self.classes)(nn.Dropout(0.1, deterministic=not train)(x))
>>> model = FlaxModel(construct(Net, classes=3), (4,), 3)
>>> model.size, refusal(model)
(15, None)
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Float32, UInt32

from pgeom.types import AnyArray

Keys = UInt32[AnyArray, "n 2"]
"""Key data per example, of which that of a batch's first example is the key of the batch."""

CLASSES = ("classes", "num_classes")  # arguments by which a module is told K
KEYS = "threefry2x32"  # whose key data are two words, whatever JAX's default is
TRIED = 3  # examples in the shapes that a module is tried on; it is initialised with one


@dataclass(frozen=True)
class FlaxModel:
    """A module for examples of one shape.

    Attributes:
      module: `module(x, train) -> logits`.
      input_shape: that of an image, or `(d,)`.
      classes: K.
    """

    module: nn.Module
    input_shape: tuple[int, ...]
    classes: int

    def __repr__(self) -> str:
        written = " ".join(repr(self.module).split())
        return f"FlaxModel({written}, {self.input_shape}, {self.classes})"

    @property
    def inputs(self) -> int:
        return math.prod(self.input_shape)

    @cached_property
    def variables(self) -> Mapping[str, Any]:
        """The shapes of all that the module keeps, by collection."""
        return jax.eval_shape(self._initialise, jax.random.key(0))

    @cached_property
    def _unravel(self) -> Callable[[Float[Array, " P"]], Any]:
        shapes = self.variables["params"]
        return ravel_pytree(jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes))[1]

    @property
    def size(self) -> int:
        return sum(leaf.size for leaf in jax.tree.leaves(self.variables["params"]))

    @cached_property
    def activations(self) -> int:
        """All results of operations that grow with the examples, and the inputs."""

        def held(n: int) -> int:
            arguments = (jnp.zeros(self.size), jnp.zeros((n, self.inputs)))
            traced = jax.make_jaxpr(self.logits)(*arguments).jaxpr
            results: list[Any] = [v.aval for line in traced.eqns for v in line.outvars]
            return sum(math.prod(result.shape) for result in results)

        return self.inputs + held(2) - held(1)

    def initial(self, rng: np.random.Generator) -> Float32[np.ndarray, " P"]:
        """The module's own initialisation, with a key that the host draws."""
        words = rng.integers(2**32, size=2, dtype=np.uint32)
        return np.asarray(_initial_vector(self)(jnp.asarray(words)))

    def masks(self, key: jax.Array, n: int) -> Keys:
        """Keys for dropout. A batch has one key, so that the module sees a batch as it is."""
        return jax.random.bits(key, (n, 2), jnp.uint32)

    def logits(
        self,
        parameters: Float[AnyArray, " P"],
        x: Float[AnyArray, "n d"],
        masks: Keys | None = None,
    ) -> Float[Array, "n K"]:
        """The module's logits, in training where there are masks."""
        variables = {"params": self._unravel(jnp.asarray(parameters))}
        examples = jnp.asarray(x).reshape(-1, *self.input_shape)
        if masks is None:
            logits = self.module.apply(variables, examples, False)
        else:
            key = jax.random.wrap_key_data(jnp.asarray(masks)[0], impl=KEYS)
            logits = self.module.apply(variables, examples, True, rngs={"dropout": key})
        return jnp.asarray(logits).astype(jnp.asarray(parameters).dtype)

    def _initialise(self, key: jax.Array) -> Mapping[str, Any]:
        return self.module.init(key, jnp.zeros((1, *self.input_shape)), False)


@cache
def _initial_vector(model: FlaxModel) -> Callable[[UInt32[Array, "2"]], Float32[Array, " P"]]:
    """The compiled initialisation of a model; equal models share it."""

    def draw(words: UInt32[Array, "2"]) -> Float32[Array, " P"]:
        key = jax.random.wrap_key_data(words, impl=KEYS)
        return ravel_pytree(model._initialise(key)["params"])[0]

    return jax.jit(draw)


def construct(module: type[nn.Module] | nn.Module, classes: int) -> nn.Module:
    """The module itself, or an instance of the class, which is told K if it takes it."""
    if isinstance(module, nn.Module):
        return module
    accepted = inspect.signature(module).parameters
    name = next((name for name in CLASSES if name in accepted), None)
    return module() if name is None else module(**{name: classes})


def refusal(model: FlaxModel) -> str | None:
    """Why a model cannot be trained here, or None; errors of the module itself are raised."""
    try:
        hash(model)
    except TypeError:
        return "must have hashable fields, tuples for lists and no arrays"
    others = sorted(set(model.variables) - {"params"})
    if "batch_stats" in others:
        return "batch statistics are not supported: use LayerNorm or GroupNorm for BatchNorm"
    if others:
        return f"must keep nothing but parameters, got the collection {others[0]!r}"
    leaves = jax.tree.leaves(model.variables.get("params", {}))
    if not leaves:
        return "must have parameters, got none"
    if strange := [leaf.dtype for leaf in leaves if leaf.dtype != jnp.float32]:
        return f"must have parameters of float32, got {strange[0]}"
    return _refused_output(model)


def _refused_output(model: FlaxModel) -> str | None:
    """What is wrong with the logits, in training or afterwards."""
    variables = {"params": model.variables["params"]}
    x = jax.ShapeDtypeStruct((TRIED, *model.input_shape), jnp.float32)
    expected = (TRIED, model.classes)
    for train in (False, True):

        def called(variables, x, key, train=train):
            return model.module.apply(variables, x, train, rngs={"dropout": key} if train else {})

        result = jax.eval_shape(called, variables, x, jax.random.key(0))
        shape, dtype = getattr(result, "shape", None), getattr(result, "dtype", None)
        if shape != expected or not jnp.issubdtype(dtype or int, jnp.floating):
            got = type(result).__name__ if shape is None else f"{dtype}{list(shape)}"
            return f"must return logits {list(expected)} for x{list(x.shape)}, got {got}"
    jax.eval_shape(jax.grad(_training_sum(model)), jnp.zeros(model.size))  # or it raises
    return None


def _training_sum(model: FlaxModel) -> Callable[[Float[Array, " P"]], Float[Array, ""]]:
    """A function of the parameters that training differentiates."""

    def total(parameters: Float[Array, " P"]) -> Float[Array, ""]:
        keys = model.masks(jax.random.key(0), TRIED)
        return jnp.sum(model.logits(parameters, jnp.zeros((TRIED, model.inputs)), keys))

    return total

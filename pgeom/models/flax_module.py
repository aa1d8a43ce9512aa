"""A Flax module of a user's own as a model.

The module is called as `module(x, train)`, with x of the shape of the images, if the examples are
images, or `[n, d]`; it returns logits `[n, K]`. Dropout draws from the stream "dropout".

>>> class Net(nn.Module):
...     classes: int
...     @nn.compact
...     def __call__(self, x, train):
...         return nn.Dense(self.classes)(nn.Dropout(0.1, deterministic=not train)(x))
>>> wrap_module(Net, (4,), 3).size
15
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float32, UInt32

from pgeom.messages import describe_error
from pgeom.models.model import Inputs, Logits, Parameters
from pgeom.types import AnyArray

Keys = UInt32[AnyArray, "n 2"]
"""Key data per example, of which that of a batch's first example is the key of the batch."""

CLASSES = ("classes", "num_classes")  # arguments by which a module takes K
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

    @property
    def inputs(self) -> int:
        return math.prod(self.input_shape)

    @cached_property
    def variables(self) -> Mapping[str, Any]:
        """The shapes of all that the module keeps, by collection."""
        return jax.eval_shape(self._draw, np.zeros(2, np.uint32))

    @cached_property
    def _flat(self) -> tuple[Array, Callable[[Array], Any]]:
        """Parameters as one vector, and the way back."""
        shapes = self.variables.get("params", {})
        return ravel_pytree(jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes))

    @property
    def size(self) -> int:
        return self._flat[0].size

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
        return np.asarray(ravel_pytree(self._draw(words)["params"])[0])

    def masks(self, key: jax.Array, n: int) -> Keys:
        """Keys for dropout. A batch has one key, so that the module sees a batch as it is."""
        return jax.random.bits(key, (n, 2), jnp.uint32)

    def logits(self, parameters: Parameters, x: Inputs, masks: Keys | None = None) -> Logits:
        """The module's logits, in training where there are masks."""
        variables = {"params": self._flat[1](jnp.asarray(parameters))}
        examples = jnp.asarray(x).reshape(-1, *self.input_shape)
        if masks is None:
            logits = self.module.apply(variables, examples, False)
        else:
            key = jax.random.wrap_key_data(jnp.asarray(masks)[0], impl=KEYS)
            logits = self.module.apply(variables, examples, True, rngs={"dropout": key})
        return jnp.asarray(logits).astype(jnp.asarray(parameters).dtype)

    @cached_property
    def _draw(self) -> Callable[..., Mapping[str, Any]]:
        """The module's initialisation, compiled once for all cells."""

        def draw(words):
            key = jax.random.wrap_key_data(jnp.asarray(words), impl=KEYS)
            return self.module.init(key, jnp.zeros((1, *self.input_shape)), False)

        return jax.jit(draw)


def wrap_module(
    given: type[nn.Module] | nn.Module, input_shape: tuple[int, ...], classes: int
) -> FlaxModel:
    """A module, or a class of them, which is given K if it takes it, as a model.

    Raises:
      ValueError: in one line, if it cannot be trained here.
    """
    name = getattr(given, "__name__", type(given).__name__)
    try:
        if isinstance(given, type):
            accepted = inspect.signature(given).parameters
            names = [argument for argument in CLASSES if argument in accepted]
            given = given(**dict.fromkeys(names[:1], classes))
        model = FlaxModel(given, input_shape, classes)
        reason = _refusal(model)
    except Exception as error:  # whatever a user's module may raise
        raise ValueError(
            f"model {name} raised {describe_error(error)}; it is called as module(x, train) and "
            f"must return logits [n, {classes}]"
        ) from error
    if reason is not None:
        raise ValueError(f"model {name} {reason}")
    return model


def _refusal(model: FlaxModel) -> str | None:
    """Why a model cannot be trained here, or None; errors of the module itself are raised."""
    hash(model)
    if others := sorted(set(model.variables) - {"params"}):
        advice = "batch statistics are not supported: use LayerNorm or GroupNorm"
        return f"must keep nothing but parameters, got the collection {others[0]!r}; {advice}"
    dtypes = {str(leaf.dtype) for leaf in jax.tree.leaves(model.variables)}
    if dtypes != {"float32"}:
        return f"must have parameters of float32, got {', '.join(sorted(dtypes)) or 'none'}"
    x, expected = jnp.zeros((TRIED, model.inputs)), (TRIED, model.classes)

    def differentiated(parameters, masks):
        logits = model.logits(parameters, x, masks)
        return jnp.sum(logits), logits

    for masks in (None, model.masks(jax.random.key(0), TRIED)):
        gradient = jax.grad(differentiated, has_aux=True)
        _, logits = jax.eval_shape(gradient, jnp.zeros(model.size), masks)
        if logits.shape != expected:
            return f"must return logits {list(expected)} for {TRIED} examples, got {logits.shape}"
    return None

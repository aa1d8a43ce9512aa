"""The identity of a run: a hash of all that determines its numbers.

Dataset content, regime, seed, model, training, precision, what is measured, the loss's constants
and what it computes. Versions of libraries and of this project are not part of it: they are
recorded with each run, and reported where they differ. But where another version of JAX traces a
function to other operations, its runs are other runs.

What a function computes is its jaxpr, with every constant, and without any name: renaming a
variable or adding a comment keeps the hash; another constant, operation or precision changes it.

>>> import jax.numpy as jnp
>>> x = jax.ShapeDtypeStruct((3,), jnp.float32)
>>> def double(x): return 2.0 * x
>>> def twice(value): return 2.0 * value  # the same
>>> fingerprint(double, x) == fingerprint(twice, x) != fingerprint(lambda x: 2.5 * x, x)
True
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jaxtyping import Float32

from experiments.engine.measures import Measure, TestPart, find_fields
from experiments.engine.study import Cell, Study
from experiments.shell.errors import UsageError
from pgeom.data.regimes import KINDS
from pgeom.losses.spec import LossSpec
from pgeom.models.model import Model
from pgeom.training.program import logit_gradient
from pgeom.types import ClassStats

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
NAMES = ("name",)  # parameters of an operation that say what it is called, not what it does
HIDDEN = ("pure_callback", "io_callback")  # operations that may compute anything, out of sight


class HiddenError(ValueError):
    """A function calls Python while it runs, where nobody can see what it computes."""


def digest(*parts: object) -> str:
    """A hash of values: numbers, texts, arrays, functions' jaxprs, and collections of them."""
    content = hashlib.sha256()
    for piece in _pieces(parts):
        content.update(f"{len(piece)}:".encode() + piece)
    return content.hexdigest()


def fingerprint(function: Callable, *arguments: Any) -> str:
    """A hash of what `function` computes for arguments of these shapes and dtypes.

    Raises:
      HiddenError: if part of that cannot be seen.
    """
    return digest(jax.make_jaxpr(function)(*arguments))


def _pieces(value: object) -> Iterator[bytes]:
    """The value as bytes, piece by piece, in an order that depends on nothing else."""
    if isinstance(value, ClosedJaxpr):
        yield from _jaxpr_pieces(value.jaxpr)
        yield from _pieces(value.consts)
    elif isinstance(value, Jaxpr):
        yield from _jaxpr_pieces(value)
    elif isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(value)
        yield f"array {array.dtype} {array.shape}".encode()
        yield np.ascontiguousarray(array).tobytes()
    elif isinstance(value, dict):
        yield b"dict"
        yield from _pieces(sorted(value.items(), key=lambda item: str(item[0])))
    elif isinstance(value, (tuple, list)):
        yield f"sequence {len(value)}".encode()
        for item in value:
            yield from _pieces(item)
    elif callable(value) and not isinstance(value, type):
        yield b"callable"  # a rule for derivatives, which the traced gradient contains already
    else:
        yield ADDRESS.sub("", f"{type(value).__name__} {value!r}").encode()


def _jaxpr_pieces(jaxpr: Jaxpr) -> Iterator[bytes]:
    """Its operations; variables are numbered in the order in which they appear."""
    numbers: dict = {}

    def atom(variable):
        if isinstance(variable, Literal):
            return ("literal", str(variable.aval), variable.val)
        number = numbers.setdefault(variable, len(numbers))
        return (number, str(variable.aval))

    yield from _pieces([atom(variable) for variable in (*jaxpr.constvars, *jaxpr.invars)])
    for equation in jaxpr.eqns:
        if equation.primitive.name in HIDDEN:
            raise HiddenError(equation.primitive.name)
        yield equation.primitive.name.encode()
        yield from _pieces([atom(variable) for variable in equation.invars])
        yield from _pieces({k: v for k, v in equation.params.items() if k not in NAMES})
        yield from _pieces([atom(variable) for variable in equation.outvars])
    yield from _pieces([atom(variable) for variable in jaxpr.outvars])


LENGTH = 16  # hexadecimal digits of a hash
TIMED, SCORES = "timed", "scores"  # what a study without a measure of its own records
EXAMPLES = 2  # rows in the shapes that functions are traced for


class StudyIdentity(NamedTuple):
    """Hashes of the parts of a study, and of each of its losses.

    Attributes:
      study: whose identity it is.
      parts: by name.
      losses: one hash each.
    """

    study: Study
    parts: dict[str, str]
    losses: tuple[str, ...]

    def cell_parts(self, cell: Cell) -> dict[str, str]:
        """The parts of the study, and what only some regimes depend on."""
        more, noise_map = {}, self.study.dataset.noise_map
        if "class_map" in KINDS[cell.regime.kind].reads and noise_map is not None:
            pairs = (f"{c}:{target}" for c, target in enumerate(noise_map) if c != target)
            more["noise_map"] = " ".join(pairs)
        if self.study.noisy_validation and cell.regime.noise_rate:
            more["validation"] = "noisy"
        return {**self.parts, **more}

    def cell_hash(self, cell: Cell) -> str:
        """The hash of what the runs of a cell share."""
        return digest(self.cell_parts(cell), str(cell.regime), cell.seed)[:LENGTH]

    def runs(self, cell: Cell) -> list[str]:
        """The identities of a cell's runs, in the order of the losses."""
        shared = self.cell_hash(cell)
        return [digest(shared, loss)[:LENGTH] for loss in self.losses]


def identify(study: Study) -> StudyIdentity:
    """The hashes of a study's parts under the present precision of JAX."""
    model, now = study.model, precision()
    parts = {
        "dataset": study.dataset.digest,
        "model": _model_digest(model, now),
        "training": digest(asdict(study.training)),
        "measure": _measure_digest(study, now),
    }
    losses = (_loss_digest(loss, model.inputs, model.classes, now) for loss in study.losses)
    return StudyIdentity(
        study,
        {**{name: value[:LENGTH] for name, value in parts.items()}, "precision": now},
        tuple(value[:LENGTH] for value in losses),
    )


def describe(study: Study) -> dict[str, dict[str, Any]]:
    """The parts of a study by their hashes, for a reader of the records.

    `source` is how the command line named a part; null if it did not.
    """
    identity, dataset, sources = identify(study), study.dataset, study.sources or {}
    examples, features = dataset.features.shape
    parts = {
        "dataset": {
            "name": dataset.name,
            "examples": examples,
            "features": features,
            "classes": dataset.num_classes,
            "class_names": list(dataset.classes),
            "source": sources.get("dataset"),
        },
        "model": {"value": repr(study.model), "source": sources.get("model")},
        "training": asdict(study.training),
        "measure": _measure_name(study),
    }
    losses = {
        key: {
            "name": loss.name,
            "constants": dict(loss.constants),
            "link": loss.link,
            "source": sources.get("losses", {}).get(loss.name),
        }
        for key, loss in zip(identity.losses, study.losses, strict=True)
    }
    return {part: {identity.parts[part]: value} for part, value in parts.items()} | {"loss": losses}


def precision() -> str:
    """The precision that JAX computes in."""
    options = jax.config.values
    products = options["jax_default_matmul_precision"] or "default"
    return f"{'float64' if options['jax_enable_x64'] else 'float32'}, {products} products"


@cache
def _loss_digest(loss: LossSpec, inputs: int, K: int, precision: str) -> str:
    """The constants of a loss, and the gradient on the logits that the trainer takes of it."""

    def gradient(stats, logits, labels, progress):
        return logit_gradient(loss, stats)(logits, labels, progress)

    arguments = (
        ClassStats(_zeros(K), _zeros(K, inputs)),
        _zeros(EXAMPLES, K),
        np.zeros(EXAMPLES, np.int32),
        _zeros(),
    )
    computed = _computed(f"the loss {loss.name}", gradient, *arguments)
    parts = (dict(loss.constants), computed, precision)
    return digest(*parts) if loss.link == "softmax" else digest(*parts, loss.link)


@cache
def _model_digest(model: Model, precision: str) -> str:
    """What a model computes with its masks, and back, without them, and its first parameters."""

    def training(parameters, x, key, slopes):
        masks = model.masks(key, EXAMPLES)
        logits, pull_back = jax.vjp(lambda w: model.logits(w, x, masks), parameters)
        return logits, pull_back(slopes)

    parameters, x = _zeros(model.size), _zeros(EXAMPLES, model.inputs)
    slopes = _zeros(EXAMPLES, model.classes)
    return digest(
        _computed("the model", training, parameters, x, jax.random.key(0), slopes),
        _computed("the model", model.logits, parameters, x),
        model.initial(np.random.default_rng(0)),
        precision,
    )


def _measure_name(study: Study) -> str:
    """What a study measures beyond the usual scores: nothing, seconds, or its own fields."""
    if study.measure is None:
        return TIMED if study.timed else SCORES
    return study.measure.name


def _measure_digest(study: Study, precision: str) -> str:
    if study.measure is None:
        return digest(_measure_name(study))
    return _measured(study.measure, study.model, precision)


@cache
def _measured(measure: Measure, model: Model, precision: str) -> str:
    x = _zeros(model.inputs)
    test = TestPart(_zeros(EXAMPLES, model.inputs), np.zeros(EXAMPLES, np.int32), x, x)
    compute = partial(find_fields, measure, model, None)
    return digest(
        fingerprint(compute, _zeros(model.size), test, jax.random.key(0), None), precision
    )


def _computed(what: str, function: Callable, *arguments: Any) -> str:
    """The fingerprint of a function, or a UsageError that names it."""
    try:
        return fingerprint(function, *arguments)
    except HiddenError as error:
        raise UsageError(
            f"{what} calls Python while it runs ({error}), so that its records could not tell what "
            "it computes: write it with jax.numpy"
        ) from error


def _zeros(*dimensions: int) -> Float32[np.ndarray, "..."]:
    return np.zeros(dimensions, np.float32)

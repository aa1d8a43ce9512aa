"""A loss, a dataset and a model, each added in one place, travel to the last figure."""

import json
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments import noise
from experiments.engine.options import Options
from experiments.engine.store import Store
from experiments.show import style as figure_style
from pgeom.data import sources
from pgeom.losses import catalogue
from pgeom.losses.spec import LossSpec, from_logits
from pgeom.models import architectures

LABEL = "Toy margin"


def hinge(logits, labels, *, margin):
    """The multiclass hinge loss: smooth enough for a test."""
    label = jax.nn.one_hot(labels, logits.shape[-1], dtype=bool)
    rival = jnp.max(jnp.where(label, -jnp.inf, logits), axis=-1)
    return jax.nn.softplus(margin + rival - jnp.sum(jnp.where(label, logits, 0.0), axis=-1))


@dataclass(frozen=True)
class Linear:
    """Logistic regression, written without Flax."""

    inputs: int
    classes: int

    @property
    def size(self):
        return (self.inputs + 1) * self.classes

    @property
    def activations(self):
        return self.inputs + self.classes

    def initial(self, rng):
        return rng.normal(0, 0.01, self.size).astype(np.float32)

    def masks(self, key, n):
        return ()

    def logits(self, parameters, x, masks=None):
        weights = parameters[self.classes :].reshape(self.inputs, self.classes)
        return jnp.dot(x, weights) + parameters[None, : self.classes]


def blobs():
    rng = np.random.default_rng(0)
    labels = np.arange(150) % 3
    features = rng.normal(size=(150, 4)) + 3 * np.eye(3, 4)[labels]
    return sources.from_arrays("blobs", features, labels, "clean symmetric-20")


@pytest.fixture
def values(monkeypatch):
    """One value each: nothing else in the project knows of them."""
    toy = LossSpec("toy", LABEL, "Toys", from_logits(hinge), {"margin": 1.0}, studied=True)
    monkeypatch.setitem(catalogue.GENERAL, "toy", toy)
    monkeypatch.setitem(sources.BUILT_IN, "blobs", blobs)
    monkeypatch.setitem(architectures.ARCHITECTURES, "toy", lambda shape, K: Linear(*shape, K))


@pytest.fixture
def legends(monkeypatch):
    """The texts in the legends of every figure that is saved."""
    seen, save, write = {}, Figure.savefig, figure_style.write_file

    def named(path, written):
        seen[path.name] = []
        return write(path, written)

    def watched(self, target, **options):
        boxes = [box for axis in self.axes if (box := axis.get_legend())] + self.legends
        seen[list(seen)[-1]] += [text.get_text() for box in boxes for text in box.texts]
        save(self, target, **options)

    monkeypatch.setattr(figure_style, "write_file", named)
    monkeypatch.setattr(Figure, "savefig", watched)
    return seen


def test_own_values_appear_everywhere_by_label(values, legends, tmp_path, capsys):
    common = Options(seeds=("2",), epochs=3, model="toy")
    noise.main(dataset="blobs", losses=("ce", "toy"), out=tmp_path, common=common)
    records = list(Store(tmp_path).records.values())
    assert len(records) == 2 * 2 * 2
    assert {record["label"] for record in records} == {"CE", LABEL}
    assert {record["dataset"] for record in records} == {"blobs"}
    (described,) = Store(tmp_path).descriptions["model"].values()
    assert described == {"value": "Linear(inputs=4, classes=3)", "source": "toy"}
    performance, _, significance = (
        (tmp_path / "tables-blobs.md").read_text().partition("against CE")
    )
    assert performance.count(f"| {LABEL} |") == 2 and f"| {LABEL} |" in significance
    assert set(legends) == {
        "noise-accuracy-blobs.png",
        "reliability-blobs-symmetric-20.png",
    }
    assert all(LABEL in texts for texts in legends.values())
    assert LABEL in capsys.readouterr().out


def test_the_model_learns(values, tmp_path, capsys):
    common = Options(seeds=("1",), epochs=40, model="toy", json=True)
    settings = {"dataset": "blobs", "regimes": ("clean",), "losses": ("toy",), "out": tmp_path}
    noise.main(**settings, common=common)
    assert json.loads(capsys.readouterr().out)[0]["accuracy_mean"] > 0.8

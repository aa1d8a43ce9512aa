"""A loss, a dataset and a model, each added in one place, travel to the last figure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments import noise
from experiments.engine.options import Options
from experiments.engine.store import Store
from pgeom.data import sources
from pgeom.losses import catalogue
from pgeom.losses.spec import LossSpec, from_logits
from pgeom.models import architectures
from pgeom.models.model import Linear

LABEL = "Toy margin"


def hinge(logits, labels, *, margin):
    """The multiclass hinge loss: smooth enough for a test."""
    label = jax.nn.one_hot(labels, logits.shape[-1], dtype=bool)
    rival = jnp.max(jnp.where(label, -jnp.inf, logits), axis=-1)
    return jax.nn.softplus(margin + rival - jnp.sum(jnp.where(label, logits, 0.0), axis=-1))


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


def test_own_values_appear_everywhere_by_label(values, tmp_path, capsys, monkeypatch):
    legends, save = [], Figure.savefig

    def watched(self, target, **options):
        boxes = [box for axis in self.axes if (box := axis.get_legend())] + self.legends
        legends.append([text.get_text() for box in boxes for text in box.texts])
        save(self, target, **options)

    monkeypatch.setattr(Figure, "savefig", watched)
    common = Options(seeds=("2",), epochs=40, learning_rate=0.05, model="toy")
    noise.main(dataset="blobs", losses=("ce", "toy"), out=tmp_path, common=common)
    records = list(Store(tmp_path).records.values())
    assert len(records) == 2 * 2 * 2
    assert {record["label"] for record in records} == {"CE", LABEL}
    assert {record["dataset"] for record in records} == {"blobs"}
    (described,) = Store(tmp_path).descriptions["model"].values()
    assert described == {"value": "Linear(inputs=4, classes=3)", "source": "toy"}
    page = (tmp_path / "tables-blobs.md").read_text()
    performance, _, significance = page.partition("against CE")
    assert performance.count(f"| {LABEL} |") == 2 and f"| {LABEL} |" in significance
    assert len(legends) == 2 and all(LABEL in texts for texts in legends)
    assert LABEL in capsys.readouterr().out
    toys = (one for one in records if (one["loss"], one["regime"]) == ("toy", "clean"))
    learnt = [one["accuracy"] for one in toys]
    assert min(learnt) > 0.8

"""Data of one's own is trained until it converges, by default, and what has not is named."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier

from experiments import noise
from experiments.engine import devices
from experiments.engine.options import Options, make_study
from experiments.engine.results import read_frame
from pgeom.data import splits
from tests.experiments.conftest import two_devices

SEEDS = Options(seeds=("2",))
ASKED = {"regimes": ("clean",), "losses": ("ce",)}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The path of 500 examples of five classes, on which 45 epochs in one batch teach little."""
    shape = {"n_samples": 500, "n_features": 12, "n_informative": 9, "n_classes": 5}
    X, y = make_classification(**shape, class_sep=2.0, flip_y=0.0, random_state=0)
    path = tmp_path_factory.mktemp("own") / "own.npz"
    np.savez(path, X=X, y=y)
    return str(path)


@pytest.fixture(scope="module")
def converged(data, tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    """The runs of `experiments.noise` on it, with nothing said about how to train."""
    out = tmp_path_factory.mktemp("converged")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "prepare_devices", two_devices)
        noise.main(dataset=data, **ASKED, out=out, common=SEEDS)
    return read_frame(make_study("noise", SEEDS, data, **ASKED), out), out


def test_by_default_runs_end_because_they_have_converged(converged):
    frame, out = converged
    assert (frame["best_epoch"] < frame["stopped_epoch"]).all()
    assert frame["stopped_epoch"].max() < 1000
    assert "last epoch" not in (out / "tables-own.md").read_text()


def test_cross_entropy_is_as_accurate_as_a_network_of_scikit_learn(data, converged):
    frame, dataset = converged[0], make_study("noise", SEEDS, data, **ASKED).dataset
    theirs = []
    for seed in (0, 1):
        split = splits.split(dataset, seed)
        network = MLPClassifier((64, 64), max_iter=2000, random_state=seed)
        network.fit(split.train.features, split.train.labels)
        theirs.append(network.score(split.test.features, split.test.labels))
    assert frame["accuracy"].mean() > np.mean(theirs) - 0.01


def test_one_line_says_what_was_chosen(data, tmp_path, capsys):
    common = Options(seeds=("1",), epochs=1)
    noise.main(dataset=data, **ASKED, out=tmp_path, common=common)
    said = "300 training examples: batches of 64, at most 1 epoch of 5 steps"
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count(said) == 1
    assert "1 of 1 run was best in its last epoch: not converged, try --epochs 2" in shown

"""`experiments.replay`: a run is found again from its record, computed again, and compared."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from experiments import ablation, longtail, lr_sensitivity, replay, robustness, runtime
from experiments.engine import user_files
from experiments.engine.identity import describe, identify
from experiments.engine.options import Options, make_study
from experiments.engine.replaying import (
    describe_parts,
    find_record,
    name_files,
    rebuild_study,
)
from experiments.engine.store import Store, versions
from experiments.shell.errors import UsageError
from pgeom.losses.likelihood import brier
from pgeom.losses.spec import LossSpec, from_logits
from tests.experiments.engine.test_store import rewrite

FILE = """
import flax.linen as nn
import jax
import jax.numpy as jnp

def cubic(p):
    return jnp.sum(p**3)

def squared(logits, labels):
    missing = 1 - jax.nn.softmax(logits)
    return jnp.take_along_axis(missing, labels[:, None], axis=1)[:, 0] ** 2

class Net(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(self.classes)(x)
"""
ONE = {"regimes": ("clean",), "losses": ("ce",)}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """The user's files, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    rows = [f"{k % 7},{k % 11},{('cat', 'dog', 'rat')[k % 3]}" for k in range(90)]
    (tmp_path / "pets.csv").write_text("\n".join(["a,b,pet", *rows, ",5,cat", ""]))
    user_files.load_once.cache_clear()
    yield tmp_path
    user_files.load_once.cache_clear()


def small(**options):
    return make_study("test", Options(seeds=("7,",), **options), "breast-cancer", **ONE)


def pets():
    options = Options(target="pet", impute=True, noise_map=("cat:dog",), validation="noisy")
    return make_study("test", options, "pets.csv", regimes=("asymmetric-40",), losses=("gce",))


STUDIES = {  # with the files that their records name
    "noise": (lambda: make_study("noise", Options(), "digits"), []),
    "long tail": (lambda: longtail.make_studies(Options(), ())[1], []),
    "variants": (lambda: ablation.make_studies(Options())[0], []),
    "rate": (lambda: lr_sensitivity.vary_rate(small())[2], []),
    "perturbations": (lambda: robustness.make_probed(Options(), ("hpg",)), []),
    "seconds": (lambda: runtime.make_timed(Options(), ("ce",)), []),
    "what to stop on": (lambda: small(epochs=3, stop_on="calibrated-nll"), []),
    "cnn": (lambda: make_study("test", Options(model="cnn"), "digits", **ONE), []),
    "file": (pets, ["pets.csv"]),
    "generator": (lambda: small(generators=("mine.py:cubic",)), ["mine.py:cubic"]),
    "unmatched": (lambda: small(generators=("mine.py:cubic",), no_match=True), ["mine.py:cubic"]),
    "own loss": (lambda: small(own_losses=("mine.py:squared",)), ["mine.py:squared"]),
    "own model": (lambda: small(model="mine.py:Net"), ["mine.py:Net"]),
}


def recorded(study, place=-1):
    """What a record of a study says of one of its runs, and the descriptions of its parts."""
    identity, cell, loss = identify(study), study.cells[-1], study.losses[place]
    record = {
        "identity": identity.runs(cell)[place],
        "made_from": {**identity.cell_parts(cell), "loss": identity.losses[place]},
        "regime": str(cell.regime),
        "seed": cell.seed,
        "loss": loss.name,
        "label": loss.label,
        "versions": versions(),
    }
    descriptions = json.loads(json.dumps(describe(study), default=repr))
    return record, describe_parts(record, descriptions)


@pytest.mark.parametrize("name", STUDIES)
def test_every_run_of_every_study_is_found_again(name, files):
    make, named = STUDIES[name]
    study = make()
    for place, loss in enumerate(study.losses):
        record, parts = recorded(study, place)
        again = rebuild_study(record, parts)
        assert identify(again).runs(again.cells[0]) == [record["identity"]]
        assert [(one.name, one.label) for one in again.losses] == [(loss.name, loss.label)]
    (files / "mine.py").write_text("raise AssertionError('it was run')")
    user_files.load_once.cache_clear()
    assert name_files(parts) == named


CHANGES = {
    "generator": ("p**3", "p**4", "the loss of run .* is not the recorded one"),
    "own loss": ("** 2", "** 4", "the loss of run .* is not the recorded one"),
    "own model": ("(x)", "(x + 1)", "the model of run .* is not the recorded one"),
    "unmatched": ("cubic", "cube", "'mine.py' has no 'cubic'; did you mean"),
    "file": ("1,2", "1,3", "the dataset of run .* is not the recorded one"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_has_changed_since_is_named_in_one_line(name, files):
    word, other, message = CHANGES[name]
    record, parts = recorded(STUDIES[name][0]())
    path = files / name_files(parts)[0].partition(":")[0]
    for change, said in (
        (lambda: path.write_text(path.read_text().replace(word, other, 1)), message),
        (path.unlink, f"there is no file '{path.name}'"),
    ):
        change()
        user_files.load_once.cache_clear()
        with pytest.raises(UsageError, match=said) as error:
            rebuild_study(record, parts)
        assert "\n" not in str(error.value)


def test_other_versions_and_precision_are_named():
    record, parts = recorded(small())
    record["made_from"]["loss"] = "0" * 16
    record["versions"] = {**versions(), "jax": "0.8.1"}
    with pytest.raises(UsageError, match=r"the loss of run .*; jax was 0\.8\.1, is \d"):
        rebuild_study(record, parts)
    record["made_from"]["precision"] = "float64, default products"
    with pytest.raises(UsageError, match="the precision of run"):
        rebuild_study(record, parts)


def with_own_loss():
    spec = LossSpec("mine", "Mine", "Own", from_logits(lambda z, y, k: k * brier(z, y)), {"k": 2.0})
    return replace(small(), losses=(spec,))


def with_own_measure():
    study = robustness.make_probed(Options(), ("ce",))
    return replace(study, measure=replace(study.measure, name="mine"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(small(), sources=None), "the dataset of this run was made in Python"),
        (with_own_measure, "the measure 'mine' was made in Python"),
        (with_own_loss, "the loss of run .* is not the recorded one"),
    ],
)
def test_what_no_command_line_named_is_named(make, message):
    with pytest.raises(UsageError, match=message):
        rebuild_study(*recorded(make()))


def test_a_run_that_nothing_describes_says_so():
    record, _ = recorded(small())
    described = describe(small())
    del described["training"]
    with pytest.raises(UsageError, match="nothing describes the training of run"):
        describe_parts(record, described)


def test_a_run_is_found_by_the_beginning_of_its_identity(tmp_path):
    store = Store(tmp_path / "out")
    with pytest.raises(UsageError, match="there are no records in"):
        find_record(store, "a")
    identities = ["ab1", "ab2", "ab3", "ab4", "ab5", "c"]
    labels = {"labels": np.arange(2), **{name: np.ones((2, 2)) for name in identities}}
    store.add("cell", [{"identity": name} for name in identities], labels)
    assert [find_record(store, name)["identity"] for name in ("ab3", "c")] == ["ab3", "c"]
    with pytest.raises(UsageError, match=r"'ab' begins .* of 5 runs: ab1, ab2, ab3, ab4 …$"):
        find_record(store, "ab")
    with pytest.raises(UsageError, match=r"no run in .* has an identity like 'x'"):
        find_record(store, "x")


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of the finished folder."""
    shutil.copytree(finished, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("place", [0, -1])
def test_a_run_is_equal_to_its_record(place, finished, capsys):
    record = list(Store(finished).records.values())[place]
    assert replay.main(record["identity"][:12], out=finished) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"{record['identity']}: breast-cancer, {record['regime']}, seed " + (
        f"{record['seed']}, {record['label']}"
    )
    assert last == f"all {len(record) - 2} values are equal"  # without versions and device


def test_what_differs_is_named(folder, capsys):
    identity, record = next(iter(Store(folder).records.items()))
    curve = [record["validation_nll"][0], 7.0, *record["validation_nll"][2:]]
    made_by = {
        "versions": {**record["versions"], "jax": "0.8.1"},
        "device": {**record["device"], "kind": "abacus", "cores": 77},
    }
    rewrite(folder, identity, ece=0.5, validation_nll=curve, **made_by)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert replay.main(identity, out=folder) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(", now ")[0] for line in printed[1:-1]] == [
        "device.kind: recorded 'abacus'",
        "device.cores: recorded 77",
        "versions.jax: recorded '0.8.1'",
        "ece: recorded 0.5",
        "validation_nll[1]: recorded 7.0",
    ]
    assert f"now {record['ece']}" in printed[4]
    assert printed[-1] == "logits: differ by at most 0"
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_other_devices_alone_are_named_and_no_failure(folder, capsys):
    identity, record = next(iter(Store(folder).records.items()))
    rewrite(folder, identity, device={**record["device"], "machine": "pdp11"})
    assert replay.main(identity, out=folder, json=True) == 0
    printed = capsys.readouterr()
    assert "device.machine: recorded 'pdp11', now" in printed.err
    found = json.loads(printed.out)
    assert (found["identity"], found["values"], found["logits"]) == (identity, [], 0.0)
    (other,) = found["accompanying"]
    assert (other["field"], other["recorded"]) == ("device.machine", "pdp11")


def test_no_file_that_a_record_names_is_read_or_run_untrusted(folder, tmp_path):
    identity, record = next(iter(Store(folder).records.items()))
    descriptions = Store(folder).descriptions
    descriptions["model"][record["made_from"]["model"]]["source"] = f"{tmp_path}/evil.py:Net"
    Store(folder).describe(descriptions)
    (tmp_path / "evil.py").write_text("raise SystemError('it was run')")
    with pytest.raises(UsageError, match=r"the record names '.*/evil\.py:Net': give --trust"):
        replay.main(identity, out=folder)
    with pytest.raises(UsageError, match="it was run"):
        replay.main(identity, out=folder, trust=True)

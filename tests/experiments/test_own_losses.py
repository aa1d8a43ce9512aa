"""A four-line file with a generator enters an experiment, and nothing else has to change."""

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import pytest

from experiments import ablation, links, noise
from experiments.engine import devices, user_files
from experiments.engine.options import Options
from experiments.engine.store import Store
from experiments.shell.errors import UsageError
from pgeom.losses import catalogue
from pgeom.losses.own import generator_loss
from tests.experiments.conftest import two_devices

FILE = """
import jax
import jax.numpy as jnp
from tests.models.modules import Net

def cubic(p):
    return jnp.sum(p**3)

def maximum(p):
    return jnp.max(p) + 0.0 * jnp.sum(p**2)

def brier(p):
    return jnp.sum(p**2)

def hinge(logits, labels):
    label = jax.nn.one_hot(labels, logits.shape[-1], dtype=bool)
    rival = jnp.max(jnp.where(label, -jnp.inf, logits), axis=-1)
    return jax.nn.softplus(1 + rival - jnp.sum(jnp.where(label, logits, 0.0), axis=-1))
"""
SETTINGS = {"dataset": "breast-cancer", "regimes": ("clean",)}


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


@pytest.fixture(autouse=True)
def loaded_anew():
    user_files.load_once.cache_clear()


def options(**changes):
    return Options(seeds=("2",), epochs=2, **changes)


def lines(folder):
    return list(Store(folder).records.values())


class Trained(NamedTuple):
    """A file of functions, the folder of their records, and what each of two commands printed."""

    file: Path
    out: Path
    matched: str
    as_they_are: str


@pytest.fixture(scope="module")
def trained(tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    """Matched generators and a loss beside others, then generators as they are."""
    folder = tmp_path_factory.mktemp("own")
    file, out, printed = folder / "mine.py", folder / "out", []
    file.write_text(FILE)
    user_files.load_once.cache_clear()
    first = options(generators=(f"{file}:cubic",), own_losses=(f"{file}:hinge",))
    second = options(generators=(f"{file}:cubic", f"{file}:maximum"), no_match=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "prepare_devices", two_devices)
        for common, losses in ((first, ("ce", "brier")), (second, ("ce",))):
            with redirect_stdout(StringIO()) as said:
                noise.main(**SETTINGS, losses=losses, out=out, common=common)
            printed.append(" ".join(said.getvalue().split()))
    return Trained(file, out, *printed)


def test_it_is_trained_beside_the_others_and_shown(trained):
    known = f"{trained.file}:cubic: strictly convex, by a short search; multiplied by 0.667 (to"
    assert known.replace(" ", "") in trained.matched.replace(" ", "")
    more = f"more by python -m proofs_numeric --generator {trained.file}:cubic"
    assert more.replace(" ", "") in trained.matched.replace(" ", "")
    page = (trained.out / "tables-breast-cancer.md").read_text()
    assert page.count("| cubic |") == page.count("| maximum |") == 2
    labels = {record["label"] for record in lines(trained.out)}
    assert labels == {"CE", "Brier", "cubic", "hinge", "maximum"}


def test_its_runs_are_those_of_the_loss_built_in_python(trained, monkeypatch, capsys):
    def written_in_python(p):
        return jnp.sum(p**3)

    spec = generator_loss(written_in_python, "python")
    monkeypatch.setitem(catalogue.GENERAL, "python", spec)
    noise.main(**SETTINGS, losses=("ce", "python"), out=trained.out, common=options())
    assert "0 runs trained, 4 reused" in " ".join(capsys.readouterr().out.split())


def test_without_matching_it_is_another_loss(trained):
    cubic = [record for record in lines(trained.out) if record["loss"] == "cubic"]
    assert len({record["identity"] for record in cubic}) == 4
    assert "4 runs trained, 2 reused" in trained.as_they_are


def test_what_is_not_strictly_convex_is_trained_and_said(trained):
    said = "F is not strictly convex, so its score is not strictly proper"
    assert said in trained.as_they_are and said not in trained.matched
    sources = (f"{trained.file}:cubic", f"{trained.file}:maximum")
    specs = user_files.load_own(sources, (), 2, match=False)
    assert [spec.proper for spec in specs] == [True, False]


BAD = {
    "taken": ({"generators": ("{}:brier",)}, "there is a loss called 'brier' already"),
    "twice": ({"generators": ("{}:cubic", "{}:cubic")}, "there is a loss called 'cubic' already"),
    "name": ({"generators": ("{}:cubc",)}, "has no 'cubc'; did you mean 'cubic'"),
    "no loss": ({"own_losses": ("{}:cubic",)}, "raised TypeError"),
    "flat": ({"generators": ("{}:maximum",)}, "curvature at uniform probabilities to be matched"),
    "no file": ({"own_losses": ("nowhere.py:f",)}, "there is no file 'nowhere.py'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_writes_nothing(case, mine, tmp_path):
    changes, says = BAD[case]
    named = {name: tuple(word.format(mine) for word in words) for name, words in changes.items()}
    with pytest.raises(UsageError) as error:
        noise.main(**SETTINGS, losses=("ce",), out=tmp_path / "out", common=options(**named))
    assert says in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_command_of_given_losses_refuses_others(mine, tmp_path):
    with pytest.raises(UsageError, match="trains given losses"):
        links.main(out=tmp_path / "out", common=options(generators=(f"{mine}:cubic",)))


def test_an_ablation_takes_other_losses_and_data(mine, tmp_path, tiny_ablation):
    own, out = options(generators=(f"{mine}:cubic",)), tmp_path / "out"
    regimes = ("clean", "symmetric-20", "symmetric-40", "pair-flip-40")
    ablation.main(dataset="wine", regimes=regimes, out=out, common=own)
    page = (out / "tables-ablation.md").read_text()
    assert page.count("| Variant | wine, clean | wine, symmetric-20 |") == 4
    assert "losses of your own" in page and page.count("| cubic |") == 1
    assert {record["loss"] for record in lines(out)} == {"capm", "hpg-0", "apms-0.2", "cubic"}
    with pytest.raises(UsageError, match="--regimes needs --dataset"):
        ablation.main(regimes=("clean",), out=tmp_path / "none", common=options())

"""Models by the names they have on a command line."""

from dataclasses import replace

import pytest

from experiments.engine import user_files
from experiments.engine.options import Options, make_study
from experiments.shell.errors import UsageError
from pgeom.data import sources
from pgeom.models.cnn import CNN
from pgeom.models.model import MLP, Linear
from tests.models import modules

DIGITS, CANCER = sources.load("digits"), sources.load("breast-cancer")


def own(name):
    return f"tests.models.modules:{name}"


def test_built_in_models_are_made_for_the_dataset():
    assert user_files.make_model("mlp", DIGITS) == MLP(64, 10)
    assert user_files.make_model("linear", CANCER) == Linear(30, 2)
    assert user_files.make_model("cnn", DIGITS) == CNN((8, 8), 10)


def test_a_study_has_the_model_that_is_asked_for():
    study = make_study("test", Options(model="linear"), "digits", regimes=("clean",))
    assert study.model == Linear(64, 10)


def test_a_module_of_ones_own_takes_images_if_there_are_any():
    model = user_files.make_model(own("Net"), DIGITS)
    assert (model.module, model.input_shape) == (modules.Net(10), (8, 8))
    assert user_files.make_model(own("Net"), CANCER).input_shape == (30,)
    assert user_files.make_model(own("Net"), CANCER) == user_files.make_model(own("Net"), CANCER)


def test_a_dataset_knows_best_what_its_images_are():
    model = user_files.make_model("cnn", replace(DIGITS, image_shape=(64,)))
    assert isinstance(model, CNN) and model.image == (64,) and model.classes == 10
    flat = replace(DIGITS, image_shape=None)
    assert user_files.make_model(own("Net"), flat).input_shape == (64,), "no image, but a table"
    with pytest.raises(
        UsageError, match=r"needs images: of a .npz file, an array X\[n, height, width\]$"
    ):
        user_files.make_model("cnn", flat)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mpl", "unknown model 'mpl'; did you mean 'mlp'"),
        ("cnn", "--model: the model 'cnn' needs images: "),
        (own("TwoResults"), r"--model: model TwoResults raised .* must return logits \[n, 2\]"),
        (own("Normalised"), "batch statistics are not supported: "),
        (own("Raising"), "Raising raised RuntimeError: no luck; it is called as module"),
        (own("WithoutTrain"), "WithoutTrain raised TypeError"),
        (own("NeedsMore"), "NeedsMore raised TypeError.*width"),
        (own("function"), "model must be a name, a Flax module or a function, got <function"),
        (own("number"), "must be a flax.linen.Module, got int"),
        ("nowhere.py:Net", "--model: there is no file 'nowhere.py'"),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(name, message):
    with pytest.raises(UsageError, match=message) as caught:
        user_files.make_model(name, CANCER)
    assert "\n" not in str(caught.value)

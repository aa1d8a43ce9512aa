"""The identity of a run changes with all that determines its numbers, and with nothing else."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.engine import identity as identities
from experiments.engine.identity import describe, identify
from experiments.engine.measures import Measure
from experiments.engine.study import Cell, Study
from experiments.shell.errors import UsageError
from pgeom import generators
from pgeom.data import sources
from pgeom.data.regimes import Regime
from pgeom.losses.catalogue import LOSSES
from pgeom.losses.spec import LossSpec, from_logits
from pgeom.models.model import MLP
from pgeom.training.settings import Optimiser, Rule, Training

CLEAN = Regime("clean")
FIRST = Cell(CLEAN, 0)
CANCER = sources.load("breast-cancer")
BASE = Study("base", CANCER, (CLEAN,), (0,), (LOSSES["gce"],), MLP(30, 2))


def run(study, place=0, cell=FIRST):
    return identify(study).runs(cell)[place]


def with_loss(loss):
    return replace(BASE, losses=(loss,))


def with_training(**changes):
    return replace(BASE, training=replace(Training(), **changes))


def edited_data():
    features = CANCER.features.copy()
    features[7, 3] = np.nextafter(features[7, 3], np.inf)
    return sources.from_arrays("breast-cancer", features, CANCER.labels)


def relabelled_data():
    labels = CANCER.labels.copy()
    labels[5] = 1 - labels[5]
    return sources.from_arrays("breast-cancer", CANCER.features, labels)


OTHER = {
    "constant of a loss": with_loss(LOSSES["gce"].variant("gce", "GCE", q=0.6)),
    "width": replace(BASE, model=MLP(30, 2, hidden=95)),
    "dropout": replace(BASE, model=MLP(30, 2, dropout=0.2)),
    "weight decay": with_training(optimiser=Optimiser(weight_decay=1e-3)),
    "clipping": with_training(optimiser=Optimiser(clip=1.0)),
    "moments": with_training(optimiser=Optimiser(b2=0.99)),
    "learning rate": with_training(learning_rate=3e-3),
    "batch size": with_training(batch_size=256),
    "epochs": with_training(epochs=44),
    "early stopping": with_training(stopping=Rule(12, 9)),
    "annealing": with_loss(LOSSES["apms"].variant("gce", "GCE", beta0=0.1)),
    "what to stop on": with_training(stop_on="accuracy"),
    "a feature": replace(BASE, dataset=edited_data()),
    "a label": replace(BASE, dataset=relabelled_data()),
    "name of the random streams": replace(
        BASE, dataset=sources.from_arrays("other", CANCER.features, CANCER.labels)
    ),
    "what is measured": replace(
        BASE,
        measure=Measure("mean", lambda predict, forecast, test, key: {"m": jnp.mean(test.mean)}),
    ),
    "timing": replace(BASE, timed=True),
}


@pytest.mark.parametrize("what", OTHER)
def test_another_value_is_another_run(what):
    assert run(OTHER[what]) != run(BASE)


def test_another_regime_or_seed_is_another_run():
    cells = [Cell(CLEAN, 0), Cell(CLEAN, 1), Cell(Regime("symmetric", 20), 0)]
    assert len({run(BASE, cell=cell) for cell in cells}) == 3


@pytest.mark.parametrize("name", ["tau", "kappa", "nu", "mean_curvature"])
def test_the_constants_of_the_candidates_count(name):
    for spec in (LOSSES["apms"], LOSSES["hpg"], LOSSES["capm"]):
        if name in spec.constants:
            changed = spec.variant("x", "x", **{name: 1.1 * spec.constants[name]})
            assert run(with_loss(changed)) != run(with_loss(spec))


def test_an_edit_in_the_mathematics_counts(monkeypatch):
    """Not only constants that a spec declares: what it computes, down to the geometry."""
    before = run(with_loss(LOSSES["hpg"]))
    assert run(with_loss(LOSSES["hpg"])) == before
    divergence = generators.log_cosh_divergence_to
    monkeypatch.setattr(generators, "log_cosh_divergence_to", lambda m, h: 1.5 * divergence(m, h))
    forget()
    jax.clear_caches()
    assert run(with_loss(LOSSES["hpg"])) != before


def test_an_edit_of_the_model_counts(monkeypatch):
    before = run(BASE)
    monkeypatch.setattr(jax.nn, "relu", jax.nn.gelu)
    forget()
    assert run(BASE) != before


@dataclass(frozen=True)
class Passing(MLP):
    """A network that passes its slopes through a rule of its own."""

    factor: float = 1.0

    def logits(self, parameters, x, masks=None):
        @jax.custom_vjp
        def identity(z):
            return z

        identity.defvjp(lambda z: (z, None), lambda _, slope: (self.factor * slope,))
        return identity(super().logits(parameters, x, masks))


def test_a_rule_for_the_derivatives_of_a_model_counts():
    first, second = (replace(BASE, model=Passing(30, 2, factor=one)) for one in (1.0, -1.0))
    assert run(first) != run(second)


def hidden(z):
    shape = jax.ShapeDtypeStruct(z.shape, z.dtype)
    return jax.pure_callback(np.asarray, shape, z, vmap_method="sequential")


def test_a_loss_that_computes_outside_of_jax_is_refused():
    @jax.custom_vjp
    def half_hidden(z):
        return jnp.sum(z, axis=-1)

    half_hidden.defvjp(
        lambda z: (half_hidden(z), z), lambda z, slope: (slope[:, None] * hidden(z),)
    )
    spec = LossSpec("own", "Own", "own", from_logits(lambda logits, labels: half_hidden(logits)))
    with pytest.raises(UsageError, match="the loss own calls Python while it runs"):
        identify(with_loss(spec))


def test_a_model_that_computes_outside_of_jax_is_refused_and_prints_are_not():
    class Outside(MLP):
        def logits(self, parameters, x, masks=None):
            return jax.lax.stop_gradient(hidden(x[:, :2]))

    class Printing(MLP):
        def logits(self, parameters, x, masks=None):
            jax.debug.print("{}", x)
            return super().logits(parameters, x, masks)

    with pytest.raises(UsageError, match="the model calls Python while it runs"):
        identify(replace(BASE, model=Outside(30, 2)))
    assert run(replace(BASE, model=Printing(30, 2)))


def test_the_first_weights_count(monkeypatch):
    before, initial = run(BASE), MLP.initial
    monkeypatch.setattr(MLP, "initial", lambda self, rng: 2 * initial(self, rng))
    forget()
    assert run(BASE) != before


def test_the_precision_counts():
    before = run(BASE)
    with jax.enable_x64(True):
        assert run(BASE) != before
    with jax.default_matmul_precision("highest"):
        assert run(BASE) != before
    assert run(BASE) == before


def test_names_comments_and_order_do_not_count():
    def mine(logits, labels):
        chosen = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
        return jax.nn.logsumexp(logits, axis=-1) - chosen

    def renamed(z, y):
        # the same under other names
        top = jnp.take_along_axis(z, y[..., None], axis=-1)[..., 0]
        return jax.nn.logsumexp(z, axis=-1) - top

    first = LossSpec("mine", "Mine", "Own", from_logits(mine))
    second = LossSpec("yours", "Yours", "Other", from_logits(renamed))
    assert run(with_loss(first)) == run(with_loss(second))
    both = replace(BASE, losses=(LOSSES["ce"], LOSSES["gce"]), name="another study")
    swapped = replace(BASE, losses=(LOSSES["gce"], LOSSES["ce"]))
    assert run(both, place=1) == run(swapped, place=0) == run(BASE)
    more = replace(BASE, seeds=(0, 1, 2), regimes=(Regime("symmetric", 20), CLEAN))
    assert run(more) == run(BASE)


def test_the_manifest_says_what_the_hashes_stand_for():
    parts, identity = describe(BASE), identify(BASE)
    gce = {"name": "gce", "constants": {"q": 0.7}, "link": "softmax", "source": None}
    assert parts["loss"][identity.losses[0]] == gce
    assert parts["training"][identity.parts["training"]]["epochs"] == 45
    assert parts["dataset"][identity.parts["dataset"]]["name"] == "breast-cancer"


def forget():
    """Forget what was traced before an edit that no process would see."""
    for cached in (identities._loss_digest, identities._model_digest, identities._measured):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def forget_afterwards():
    yield
    forget()

"""The identity of a run changes with all that determines its numbers, and with nothing else."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.engine import identity as identities
from experiments.engine.identity import describe, digest, fingerprint, identify
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


def with_data(name="breast-cancer", feature=0.0, label=0):
    """The dataset with a feature a little larger, or another label."""
    features, labels = CANCER.features.copy(), CANCER.labels.copy()
    features[7, 3] = np.nextafter(features[7, 3], features[7, 3] + feature)
    labels[5] = (labels[5] + label) % 2
    return replace(BASE, dataset=sources.from_arrays(name, features, labels))


OTHER = {
    "constant of a loss": with_loss(LOSSES["gce"].variant("gce", "GCE", q=0.6)),
    "dropout": replace(BASE, model=MLP(30, 2, dropout=0.2)),
    "weight decay": with_training(optimiser=Optimiser(weight_decay=1e-3)),
    "learning rate": with_training(learning_rate=3e-3),
    "batch size": with_training(batch_size=256),
    "early stopping": with_training(stopping=Rule(12, 9)),
    "annealing": with_loss(LOSSES["apms"].variant("gce", "GCE", beta0=0.1)),
    "what to stop on": with_training(stop_on="accuracy"),
    "a feature": with_data(feature=1.0),
    "a label": with_data(label=1),
    "name of the random streams": with_data(name="other"),
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


def test_edits_of_the_model_and_of_its_first_weights_count(monkeypatch):
    before, initial = run(BASE), MLP.initial
    monkeypatch.setattr(jax.nn, "relu", jax.nn.gelu)
    forget()
    assert run(BASE) != before
    monkeypatch.undo()
    monkeypatch.setattr(MLP, "initial", lambda self, rng: 2 * initial(self, rng))
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


def test_what_computes_outside_of_jax_is_refused_and_prints_are_not():
    @jax.custom_vjp
    def half_hidden(z):
        return jnp.sum(z, axis=-1)

    half_hidden.defvjp(
        lambda z: (half_hidden(z), z), lambda z, slope: (slope[:, None] * hidden(z),)
    )
    spec = LossSpec("own", "Own", "own", from_logits(lambda logits, labels: half_hidden(logits)))
    with pytest.raises(UsageError, match="the loss own calls Python while it runs"):
        identify(with_loss(spec))

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


def test_the_precision_counts():
    before = run(BASE)
    with jax.enable_x64(True):
        assert run(BASE) != before
    with jax.default_matmul_precision("highest"):
        assert run(BASE) != before
    assert run(BASE) == before


def test_names_and_order_do_not_count():
    def mine(logits, labels):
        return jax.nn.logsumexp(logits, axis=-1) - labels

    def renamed(z, y):
        # the same under other names
        return jax.nn.logsumexp(z, axis=-1) - y

    first = LossSpec("mine", "Mine", "Own", from_logits(mine))
    second = LossSpec("yours", "Yours", "Other", from_logits(renamed))
    assert run(with_loss(first)) == run(with_loss(second))
    both = replace(BASE, losses=(LOSSES["ce"], LOSSES["gce"]), name="another study")
    swapped = replace(BASE, losses=(LOSSES["gce"], LOSSES["ce"]))
    assert run(both, place=1) == run(swapped, place=0) == run(BASE)
    more = replace(BASE, seeds=(0, 1, 2), regimes=(Regime("symmetric", 20), CLEAN))
    assert run(more) == run(BASE)


def test_descriptions_say_what_the_hashes_stand_for():
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


X = jax.ShapeDtypeStruct((3,), jnp.float32)
TABLE = np.arange(3, dtype=np.float32)


def original(x):
    """What the others are variants of."""
    weights = jnp.exp(x) * TABLE
    return jax.nn.logsumexp(weights) + 0.5


def renamed(value):
    """The same, with another name for everything, and a comment."""
    w = jnp.exp(value) * TABLE  # a table of weights
    return jax.nn.logsumexp(w) + 0.5


OTHERS = {
    "constant": lambda x: jax.nn.logsumexp(jnp.exp(x) * TABLE) + 0.25,
    "table": lambda x: jax.nn.logsumexp(jnp.exp(x) * (TABLE + 1)) + 0.5,
    "operation": lambda x: jax.nn.logsumexp(jnp.expm1(x) * TABLE) + 0.5,
    "argument order": lambda x: 0.5 - jax.nn.logsumexp(jnp.exp(x) * TABLE),
    "inside a branch": lambda x: jax.lax.cond(x[0] > 0, original, lambda x: original(x) + 1, x),
    "inside a loop": lambda x: jax.lax.fori_loop(0, 3, lambda _, c: c * 2.5, original(x)),
    "precision": lambda x: original(x.astype(jnp.float16)),
}


def test_names_and_comments_do_not_count_for_a_fingerprint():
    assert fingerprint(renamed, X) == fingerprint(original, X)
    outer = [lambda x, f=f: jax.jit(f)(x) * 2 for f in (original, renamed)]
    assert fingerprint(outer[0], X) == fingerprint(outer[1], X)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_computed_counts(name):
    assert fingerprint(OTHERS[name], X) != fingerprint(original, X)


def test_a_rule_for_derivatives_counts_where_a_gradient_is_taken():
    def with_rule(factor):
        @jax.custom_jvp
        def f(x):
            return jnp.sum(x)

        f.defjvp(lambda p, t: (f(*p), factor * jnp.sum(t[0])))
        return f

    one, two = with_rule(1.0), with_rule(2.0)
    assert fingerprint(jax.grad(one), X) != fingerprint(jax.grad(two), X)
    assert fingerprint(jax.grad(one), X) == fingerprint(jax.grad(with_rule(1.0)), X)


def test_digests_of_values():
    assert digest({"a": 1, "b": 2.0}) == digest({"b": 2.0, "a": 1})
    values = [1, 1.0, "1", True, None, (1,), [1, 2], {"1": 1}, np.float32(1), np.float64(1), b"1"]
    values += [np.zeros(2), np.zeros((2, 1)), np.ones(2)]
    assert len({digest(value) for value in values}) == len(values)
    assert digest("ab", "c") != digest("a", "bc")

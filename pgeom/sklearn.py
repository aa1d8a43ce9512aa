"""Proper losses behind scikit-learn's interface.

>>> from sklearn.datasets import load_wine
>>> X, y = load_wine(return_X_y=True)
>>> classifier = ProperLossClassifier(loss="brier", epochs=30, random_state=0).fit(X, y)
>>> classifier.predict_proba(X).shape, classifier.score(X, y) > 0.95
((178, 3), True)
"""

import warnings
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from pgeom import extras

if message := extras.missing("pgeom.sklearn", "experiments"):
    raise ModuleNotFoundError(message)

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pgeom.losses.own import LossLike, make_loss
from pgeom.models.architectures import ModelLike, make_model
from pgeom.training.fit import Examples, fit, round_up
from pgeom.training.settings import Optimiser, Rule, Training, fit_to_size

OUTLIERS = 3.0  # standard deviations: a pixel that is almost always 0 has outliers of dozens
EPOCHS = 100
AT_ONCE = 4096  # examples that are predicted in one call


class ProperLossClassifier(ClassifierMixin, BaseEstimator):
    """A neural network trained with any loss of pgeom.

    Features are standardised, and outliers drawn in. Equal examples are merged, which makes a
    weight of two the same as two examples; the order of the examples does not matter.

    Args:
      loss: a name of the catalogue, such as "ce", "brier" or "hpg"; a convex `F(p)`;
        a `loss(logits, labels)`; or a `LossSpec`.
      match: whether to rescale an `F(p)` to the curvature of the Brier score at uniform
        probabilities, or at the vertices if it is less there, so that one learning rate suits both.
      model: "mlp", "linear", "cnn", a Flax module called as `module(x, train)`, or a function
        `(input_shape, classes) -> Model`.
      image_shape: of an example, such as `(8, 8)`, for models of images.
      epochs: maximum epochs; by default 100, and with early stopping as many as make 20,000 steps,
        within 100 to 1,000.
      batch_size: upper bound on the examples per step.
      learning_rate: of AdamW.
      weight_decay: of AdamW.
      early_stopping: whether to set a share of the examples aside, stop when their NLL has not
        fallen for `patience` epochs, and keep the best epoch.
      validation_fraction: that share.
      patience: epochs without a new best.
      n_seeds: how many networks to train; their probabilities are averaged.
      class_weight: a weight per class, "balanced", or None.
      random_state: an integer, a `RandomState`, or None.

    Attributes:
      classes_: `[K]`.
      parameters_: `[n_seeds, P]`.
      mean_, scale_: `[d]`, by which features are standardised.
      n_iter_: the largest number of epochs of a seed.
      best_epoch_: `[n_seeds]`, the epoch of the parameters.
      validation_nll_: `[n_seeds, epochs]`, NaN where there is none.
    """

    def __init__(
        self,
        loss: LossLike = "ce",
        *,
        match: bool = True,
        model: ModelLike = "mlp",
        image_shape: tuple[int, ...] | None = None,
        epochs: int | None = None,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        n_seeds: int = 1,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.loss = loss
        self.match = match
        self.model = model
        self.image_shape = image_shape
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.n_seeds = n_seeds
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "ProperLossClassifier":
        """Train on `X [n, d]` and labels `y [n]` of any type, with nonnegative weights `[n]`."""
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        self.classes_, labels = np.unique(y, return_inverse=True)
        K = len(self.classes_)
        if K < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes, got {K} class")
        features, labels, weights = merge_equal(Examples(X, labels, weights))
        with np.errstate(all="ignore"):
            scaler = StandardScaler().fit(features, sample_weight=weights)
        self.mean_, self.scale_ = np.asarray(scaler.mean_), np.asarray(scaler.scale_)
        if not np.isfinite(self.scale_).all():
            raise ValueError("X must be within ±1e150 to be standardised")
        given, y = {"classes": self.classes_, "sample_weight": weights}, self.classes_[labels]
        weights = weights * compute_class_weight(self.class_weight, y=y, **given)[labels]
        data = Examples(self._standardise(features), labels, weights / weights.mean())
        random = check_random_state(self.random_state)
        train, validation = data, None
        if self.early_stopping:
            share = {"test_size": self.validation_fraction, "random_state": random}
            parts = train_test_split(*data, stratify=labels, **share)
            train, validation = Examples(*parts[::2]), Examples(*parts[1::2])
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_seeds).tolist()
        model = make_model(self.model, X.shape[1], self.image_shape, K)
        loss = make_loss(self.loss, K, match=self.match)
        training = self._training(len(train.labels))
        results = fit(model, loss, train, validation, training, seeds)
        trained = jax.tree.map(lambda *seeds: np.concatenate(seeds), *results)
        self.parameters_, self.best_epoch_ = trained.parameters, trained.best_epoch
        self.n_iter_ = int(trained.stopped_epoch.max())
        self.validation_nll_ = trained.validation_loss
        if not np.isfinite(self.parameters_).all() or not self.best_epoch_.all():
            raise ValueError(f"training diverged; learning_rate={self.learning_rate} is too large")
        if self.early_stopping and self.best_epoch_.max() == training.epochs:
            warnings.warn(
                f"validation NLL was lowest in the last of {training.epochs} epochs: not "
                f"converged, try epochs={2 * training.epochs}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n K"]:
        """Probabilities `[n, K]` of the classes, in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        model = make_model(self.model, X.shape[1], self.image_shape, len(self.classes_))
        parts = []
        for first in range(0, len(X), AT_ONCE):
            part = self._standardise(X[first : first + AT_ONCE])
            padded = np.zeros((round_up(len(part)), X.shape[1]), np.float32)
            padded[: len(part)] = part
            mean = _mean_probabilities(model)(self.parameters_, padded)
            parts.append(np.asarray(mean, np.float64)[: len(part)])
        probabilities = np.concatenate(parts)
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each example."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def _check_parameters(self):
        for name in ("epochs", "batch_size", "patience", "n_seeds"):
            if name != "epochs" or self.epochs is not None:
                check_scalar(getattr(self, name), name, Integral, min_val=1)
        inside = {"min_val": 0, "include_boundaries": "neither"}
        check_scalar(self.learning_rate, "learning_rate", Real, **inside)
        check_scalar(self.validation_fraction, "validation_fraction", Real, max_val=1, **inside)

    def _standardise(self, X):
        """Standardised features, of which the far ones are drawn in, smoothly, to within ±3."""
        z = (X - self.mean_) / self.scale_
        return (z / np.hypot(1, z / OUTLIERS)).astype(np.float32)

    def _training(self, examples):
        """The settings for so many training examples."""
        batch_size, epochs = int(self.batch_size), self.epochs
        if epochs is None:
            # more cost nothing where runs stop before; without early stopping they may fit noise
            most = fit_to_size(examples, batch_size=batch_size).epochs
            epochs = max(EPOCHS, most) if self.early_stopping else EPOCHS
        optimiser = Optimiser(weight_decay=float(self.weight_decay))
        stopping = Rule(minimum=1, patience=int(self.patience))
        sizes = (int(epochs), batch_size, float(self.learning_rate))
        return Training(*sizes, stopping=stopping, optimiser=optimiser)


def merge_equal(data: Examples) -> Examples:
    """Equal examples as one that has their weight, in an order that depends on nothing else."""
    exact = data.features.astype(np.float64) + 0.0  # makes one zero of two
    keys = np.ascontiguousarray(np.column_stack([exact, data.labels]))
    whole = keys.view(np.dtype((np.void, keys.shape[1] * keys.itemsize))).ravel()
    _, first, place = np.unique(whole, return_index=True, return_inverse=True)
    weights = np.bincount(place.ravel(), data.weights)
    return Examples(data.features[first], data.labels[first], weights)


@cache
def _mean_probabilities(model):
    """`(parameters [S, P], x [n, d])` to the mean of S networks' probabilities, compiled."""

    def mean(parameters, x):
        logits = jax.lax.map(lambda vector: model.logits(vector, x), parameters)
        return jnp.mean(jax.nn.softmax(logits), axis=0)

    return jax.jit(mean)

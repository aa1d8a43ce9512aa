"""A loss as a value: what it computes, with which constants, and what it is called.

Everything that a study or a table needs to know about a loss is here, so that a new loss is one
value:

>>> from pgeom.losses import catalogue
>>> gce = catalogue.LOSSES["gce"]
>>> gce.label, gce.family, dict(gce.constants)
('GCE', 'Noise-robust', {'q': 0.7})
>>> gentle = gce.variant("gce-0.2", "GCE, q = .2", q=0.2)
>>> dict(gentle.constants)
{'q': 0.2}
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pgeom.deferred import Deferred

if TYPE_CHECKING:  # JAX is not needed to name a loss
    from pgeom.types import ClassStats, Forecast, Generator, Loss

Link = Literal["softmax", "canonical"]
_links, _scores = Deferred("pgeom.links"), Deferred("pgeom.scores")


@dataclass(frozen=True)
class LossSpec:
    """A loss of a study. Two that compute the same are equal, whatever they are called.

    Attributes:
      name: how the command line and the records call it.
      label: how tables and figures call it.
      family: the losses that figures show side by side.
      make: `make(stats, **constants)` gives `loss(logits, labels)`; it may be called inside a
        traced function. None is for the score of `generator`.
      constants: the loss's own, by name; they are part of the identity of a run.
      studied: whether the loss is under study, and not one of those it is compared with.
      proper: whether, as training ends, only the true probabilities have the least risk.
      note: what a user should know before it is trained.
      generator: `generator(stats, **constants)` gives the F of which the loss is the score.
      link: from logits to probabilities, in training and in prediction: softmax, or the canonical
        link of F, with which the loss is the Fenchel–Young loss of F.
      annealed: whether the loss changes as training goes on: `make` is given `progress`, the share
        of the planned steps that have been taken, from 0 to 1.
    """

    name: str = field(compare=False)
    label: str = field(compare=False)
    family: str = field(compare=False)
    make: "Callable[..., Loss] | None" = None
    constants: Mapping[str, Any] = field(default_factory=dict, hash=False)
    studied: bool = field(default=False, compare=False)
    proper: bool = field(default=False, compare=False)
    note: str = field(default="", compare=False)
    generator: "Callable[..., Generator] | None" = None
    link: Link = "softmax"
    annealed: bool = False

    def build(self, stats: "ClassStats", progress: Any = 0.0) -> "Loss":
        """The loss for the class statistics of one training partition.

        Args:
          stats: of the partition.
          progress: the share of the planned steps that have been taken, for an annealed loss.
        """
        if self.link == "canonical":
            return _links.fenchel_young(self._generator(stats))
        if self.make is None:
            return _scores.on_logits(_scores.bregman_score(self._generator(stats)))
        schedule = {"progress": progress} if self.annealed else {}
        return self.make(stats, **schedule, **self.constants)

    def forecast(self, stats: "ClassStats") -> "Forecast":
        """The link of the loss, for the class statistics of one training partition."""
        if self.link == "canonical":
            return _links.canonical_link(self._generator(stats))
        import jax  # which naming a loss does not need

        return jax.nn.softmax

    def _generator(self, stats: "ClassStats") -> "Generator":
        assert self.generator is not None
        return self.generator(stats, **self.constants)

    def with_canonical_link(self) -> "LossSpec":
        """The Fenchel–Young loss of the same generator, under the same name."""
        if self.generator is None:
            raise ValueError(f"{self.name} must be the score of a generator to have its link")
        return replace(self, label=f"{self.label}, canonical", link="canonical")

    def variant(self, name: str, label: str, **constants) -> "LossSpec":
        """The same loss under another name, with some constants changed."""
        return replace(self, name=name, label=label, constants={**self.constants, **constants})


def from_logits(loss: Callable) -> "Callable[..., Loss]":
    """The `make` of a loss `loss(logits, labels, **constants)` that needs no class statistics."""
    return lambda stats, **constants: partial(loss, **constants)


def from_counts(loss: Callable) -> "Callable[..., Loss]":
    """The `make` of a loss `loss(logits, labels, *, class_counts, **constants)`."""
    return lambda stats, **constants: partial(loss, class_counts=stats.counts, **constants)

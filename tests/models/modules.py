"""Flax modules as users write them, good and bad."""

import flax.linen as nn
import jax.numpy as jnp


class Net(nn.Module):
    """A good one, that is told the number of classes."""

    classes: int
    rate: float = 0.5

    @nn.compact
    def __call__(self, x, train):
        x = nn.relu(nn.Dense(16)(x.reshape(x.shape[0], -1)))
        return nn.Dense(self.classes)(nn.Dropout(self.rate, deterministic=not train)(x))


class Convolution(nn.Module):
    """One that needs images."""

    num_classes: int

    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.relu(nn.Conv(4, (3, 3), strides=2)(x[..., None]))
        return nn.Dense(self.num_classes)(nn.LayerNorm()(x.reshape(x.shape[0], -1)))


class HalfPrecision(nn.Module):
    """Computes in 16 bits and keeps its parameters in 32."""

    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(3, dtype=jnp.bfloat16)(x)


class FewerLogits(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(2)(x)


class TwoResults(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(3)(x), x


class Normalised(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(3)(nn.BatchNorm(use_running_average=not train)(x))


class HalfParameters(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(3, param_dtype=jnp.float16)(x)


class Raising(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        raise RuntimeError("no luck")


class WithoutTrain(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class NeedsMore(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(3)(nn.Dense(self.width)(x))


instance = Net(classes=3, rate=0.1)
number = 3


def function(x, train):
    return x

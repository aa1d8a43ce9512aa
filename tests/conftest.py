"""Strictness for every test: no silent promotion of ranks or dtypes, float64 only where asked."""

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_disable_most_optimizations", True)  # tests compile more than they run
jax.config.update("jax_num_cpu_devices", 2)  # so that sharding is real wherever tests run


@pytest.fixture
def x64():
    """Run the test in float64."""
    with jax.enable_x64(True):
        yield

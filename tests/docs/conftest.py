"""The surroundings of the commands in the documentation."""

import pytest

from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Commands find this checkout, and share what they compile, with little optimisation."""
    return {
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }


@pytest.fixture(autouse=True)
def as_users_have_it(unchecked_annotations):
    """Without checks of annotations, which are a third of the time of what traces much."""

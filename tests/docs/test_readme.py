"""The examples of README, CONTRIBUTING and the three uses run."""

import pytest

from tests.docs.pages import GROUPS, run_page


@pytest.mark.parametrize("page", GROUPS["test_readme"])
def test_the_examples_run(page, environment, tmp_path, monkeypatch):
    run_page(page, tmp_path, environment, monkeypatch)

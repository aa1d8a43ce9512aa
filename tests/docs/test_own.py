"""The examples of the pages about a generator, data and a model of one's own run."""

import pytest

from tests.docs.pages import GROUPS, run_page


@pytest.mark.parametrize("page", GROUPS["test_own"])
def test_the_examples_run(page, environment, tmp_path, monkeypatch):
    run_page(page, tmp_path, environment, monkeypatch)

"""The examples of the pages about commands, records and clusters run."""

import pytest

from tests.docs.pages import GROUPS, run_page


@pytest.mark.parametrize("page", GROUPS["test_commands"])
def test_the_examples_run(page, environment, tmp_path, monkeypatch):
    run_page(page, tmp_path, environment, monkeypatch)

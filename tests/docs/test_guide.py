"""The documentation as a whole: its examples have teeth, its names, numbers and links are right."""

import inspect
import re
import shlex
from pathlib import Path

import pytest

import pgeom
from tests.docs.pages import (
    GROUPS,
    GUIDE,
    NO_EXAMPLES,
    PAGES,
    ROOT,
    blocks,
    execute,
    file_name,
    run,
    shrink,
)


def test_every_page_with_examples_is_run_once():
    assert sorted(sum(GROUPS.values(), ())) == sorted(page.stem for page in PAGES)
    assert all((Path(__file__).parent / f"{name}.py").exists() for name in GROUPS)


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_every_python_block_of_the_guide_asserts_something(page):
    for block in blocks(page.read_text()):
        if block.language == "python" and not file_name(block):
            asserts = re.search(r"^ *assert ", block.text, re.MULTILINE)
            assert asserts, f"the block at line {block.line} does not"


def test_pages_without_examples_have_none():
    for stem in NO_EXAMPLES:
        assert blocks((ROOT / f"docs/{stem}.md").read_text()) == []


def test_a_false_statement_fails_at_its_line(tmp_path):
    page = "# A page\n```python\nx = 2\n```\nand\n```python\ny = 1\nassert x == y\n```\n"
    assert [block.line for block in blocks(page)] == [3, 7]
    with pytest.raises(AssertionError) as error:
        run(page, "page.md", tmp_path, {})
    assert error.traceback[-1].lineno + 1 == 8


def test_a_command_with_another_exit_code_fails(tmp_path, environment):
    with pytest.raises(AssertionError, match="digits"):
        execute("python -m experiments.noise --dataset digit", tmp_path, environment)
    with pytest.raises(AssertionError, match="do not know how to test"):
        execute("make all", tmp_path, environment)


def test_commands_are_made_tiny():
    words = shlex.split("experiments.noise --seeds 10 --dataset digits")
    tiny = "experiments.noise --dataset digits --losses ce hpg --seeds 2 --epochs 2"
    assert shrink(words) == shlex.split(tiny)
    assert shrink(["proofs_numeric"]) == shlex.split("proofs_numeric --only margin --classes 3")


def public_names():
    """The public names of pgeom and of its public modules, such as `losses.brier`."""
    for name in pgeom.__all__:
        value = getattr(pgeom, name)
        if not inspect.ismodule(value):
            yield name
            continue
        own = (k for k, v in vars(value).items() if getattr(v, "__module__", "") == value.__name__)
        for inside in getattr(value, "__all__", own):
            if not inside.startswith("_"):
                yield f"{name}.{inside}"


def documented_names():
    """The names that the reference takes from docstrings."""
    module = ""
    for line in (ROOT / "docs/api.md").read_text().splitlines():
        if found := re.match(r"\.\. currentmodule:: (.*)", line):
            module = found[1]
        elif found := re.match(r"\.\. auto(?:function|class|data):: ([\w.]+)", line):
            full = found[1] if found[1].startswith("pgeom.") else f"{module}.{found[1]}"
            yield full.removeprefix("pgeom.")


def test_the_reference_has_every_public_name():
    assert set(public_names()) - set(documented_names()) == set()


def mean_tables(page: str) -> dict[tuple[str, str, str], str]:
    """The means in the tables of a page, by loss, metric and place.

    The columns of a table are places under the heading of a metric, or metrics under a place.
    """
    found, above, header = {}, "", []
    for line in page.splitlines():
        if heading := re.fullmatch(r"### (.*): mean ± sample sd|\*\*(.* .*)\*\*", line):
            above = heading[1] or heading[2]
        elif line.startswith("#"):
            above = ""
        elif line.startswith("| ") and above:
            loss, *cells = line.strip("| ").split(" | ")
            if loss == "Loss":
                header = cells
                continue
            for other, cell in zip(header, cells, strict=True):
                metric, place = (above, other) if ", " in other else (other, above)
                found[loss, metric, place] = cell.strip("*")
    return found


def test_the_numbers_of_the_advice_are_those_that_were_measured():
    """Each cell of choosing.md stands in the answer, for its loss, its metric and its place."""
    measured = mean_tables((ROOT / "docs/answer.md").read_text())
    advised = mean_tables((ROOT / "docs/choosing.md").read_text())
    assert len(measured) > 500 and len(advised) > 200
    assert {key: cell for key, cell in advised.items() if measured[key] != cell} == {}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_lead_somewhere(page):
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []

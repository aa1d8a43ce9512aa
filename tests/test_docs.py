"""The Python blocks of the documentation run as they stand, and what they assert holds."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "CONTRIBUTING.md", "docs/guide.md"]


def blocks(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a page of Markdown, each with the number of its first line."""
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, block.start(1)) + 1, block.group(1)) for block in found]


def run(text: str, name: str) -> None:
    """Run the blocks in order, in one namespace; a failure names the line of the page."""
    namespace = {"__name__": "__docs__"}
    for line, code in blocks(text):
        exec(compile("\n" * (line - 1) + code, name, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_run(page):
    text = (ROOT / page).read_text()
    assert blocks(text)
    run(text, str(ROOT / page))


def test_every_block_of_the_guide_asserts_something():
    for line, code in blocks((ROOT / "docs/guide.md").read_text()):
        assert re.search(r"^ *assert ", code, re.MULTILINE), f"the block at line {line} does not"


def test_a_false_statement_fails_at_its_line():
    page = "# A page\n```python\nx = 2\n```\nand\n```python\ny = 1\nassert x == y\n```\n"
    assert [line for line, _ in blocks(page)] == [3, 7]
    with pytest.raises(AssertionError) as error:
        run(page, "page.md")
    assert error.traceback[-1].lineno + 1 == 8

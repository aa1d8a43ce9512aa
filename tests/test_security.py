"""What comes from outside is data: it never becomes code, a path, or markup.

That no name in a record becomes a path is in `tests/experiments/engine/test_damage.py` and
`tests/experiments/test_replay.py`.
"""

import ast
import re
from html.parser import HTMLParser

import pytest

from experiments.show import page, tables as grid
from experiments.show.tables import Grid
from tests.sources import sources

UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml"}
UNSAFE_FUNCTIONS = {"eval", "exec", "compile", "__import__"}
UNSAFE_METHODS = {"os.system", "os.popen", "pd.read_pickle", "pandas.read_pickle", "torch.load"}
UNSAFE_OPTIONS = {"allow_pickle", "shell"}  # unless they are False
TEXTS = {
    "html": "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;",
    "rich": "[bold red]stop[/bold red] [/] [link=https://a.b]x[/link] :smile:",
    "tex": "\\input{/etc/passwd} $x$ 50% a_b ^^41 ~ # & {",
    "lines": "one\rtwo\n\nthree\x0cfour\x1b[2Jfive\u2028six",
    "table": "a | b |\n|---|---|\n# c",
}


def dangers(source):
    """What a source has that may run or unpickle what it reads."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            names = [module] if module else [alias.name for alias in node.names]
            yield from (name for name in names if name.split(".")[0] in UNSAFE_MODULES)
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in UNSAFE_FUNCTIONS | UNSAFE_METHODS:
                yield name
            for option in node.keywords:
                if option.arg in UNSAFE_OPTIONS and ast.unparse(option.value) != "False":
                    yield f"{name}({option.arg})"


def test_nothing_is_evaluated_or_unpickled():
    found = {path: names for path, text in sources().items() if (names := [*dangers(text)])}
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "eval('1')",
        "def late():\n    exec(text)",
        "os.system('ls')",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=chosen)",
        "subprocess.run(line, shell=True)",
        "pd.read_pickle(path)",
    ],
)
def test_a_danger_is_found(source):
    assert [*dangers(source)]


@pytest.mark.parametrize(
    "source", ["np.load(path, allow_pickle=False)", "model.eval()", "re.compile"]
)
def test_what_is_harmless_is_not(source):
    assert not [*dangers(source)]


class Structure(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        # a class says how wide a text is set, and nothing else depends on it
        self.tags.append((tag, [name for name, _ in attrs if name != "class"]))

    def handle_data(self, data):
        self.words += data


def shown(text):
    """A grid with the text in every place that a name may come to."""
    return Grid(text, ["Loss", text], [[text, text]], {(0, 1)}, [text])


def as_page(text):
    item = page.Item("tab:a", "b", text, "c", False, [shown(text)] * 2, None, [])
    made = page.Page("d", text, [text], [page.Section("e", "f", [item])], {}, [])
    return page.to_html(made)


@pytest.mark.parametrize("name", TEXTS)
def test_html_shows_a_text_as_it_is(name):
    text = TEXTS[name]
    evil, plain = (Structure(as_page(x)) for x in (text, "plain"))
    assert evil.tags == plain.tags
    assert evil.words == plain.words.replace("plain", text)


@pytest.mark.parametrize("name", TEXTS)
def test_markdown_keeps_its_rows(name):
    evil, plain = (
        grid.to_markdown(shown(x)._replace(footnotes=[])) for x in (TEXTS[name], "plain")
    )
    assert len(evil.splitlines()) == len(plain.splitlines())
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in evil.splitlines()]
    assert bars[1:] == [line.count("|") for line in plain.splitlines()[1:]]

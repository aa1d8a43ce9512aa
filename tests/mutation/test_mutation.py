"""The mutation test itself: what it changes and leaves alone, and its verdicts."""

import ast
import io
from pathlib import Path

import pytest

from tests.mutation import runs, trial
from tests.mutation.__main__ import ROOT, main
from tests.mutation.coverage import Coverage
from tests.mutation.operators import draw, find_mutants, mutated, shown
from tests.mutation.report import print_report
from tests.mutation.trial import EQUIVALENT, KILLED, SURVIVED, Answer

LIBRARY = '''"""A module."""


def half(x):
    """Half of x; 2 is twice 1."""
    if x is None:
        raise ValueError(f"x must be a number, not {1 + 1}")
    return x / 2


def third(x: "1 + 1" = 3) -> "2 * 3":
    return x / 3 + 0 * x
'''
TESTS = """from pgeom.geometry.parts import half, third


def test_half():
    assert half(3) == 1.5


def test_third_of_nothing():
    assert third(0) == 0
"""


@pytest.fixture
def project(tmp_path):
    """A project whose tests see every error in `half` and few in `third`."""
    runs.prepare(["hypothesis", "jaxtyping", "pytest"])
    for file, text in {
        "pgeom/__init__.py": "",
        "pgeom/geometry/__init__.py": "",
        "pgeom/geometry/parts.py": LIBRARY,
        "tests/__init__.py": "",
        "tests/geometry/__init__.py": "",
        "tests/geometry/test_parts.py": TESTS,
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--doctest-modules"\n',
    }.items():
        (tmp_path / "project" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / file).write_text(text)
    return tmp_path / "project"


def changes(source):
    return [shown(mutant, source)[1] for mutant in find_mutants("a.py", source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < 2.0", ["x = a <= 2.0", "x = a > 2.0", "x = a < 2.5", "x = a < 1.6"]),
        ("x = a is 0", ["x = a is not 0", "x = a is 1"]),
        ("x = -a", ["x = a"]),
        ("x = (a) - b", ["x = (a) + b", "x = (a)"]),
        ("x = not a and b", ["x = not a or b", "x = a and b"]),
        ("x = np.max(a, b)", ["x = np.min(a, b)"]),
        ("x = where(a, b, c)", ["x = where(a, c, b)"]),
        ("x = f(α, b.c) * True", ["x = f(α, b.c) / True", "x = f(b.c, α) * True"]),
        ("x = zip(a, strict=True)", []),
        ("x: TypeAlias = a | b", []),
        ("assert x > 1", []),
    ],
)
def test_every_kind_of_mutant(source, expected):
    flipped = [source.replace("True", "False")] if expected and "True" in source else []
    assert sorted(changes(source)) == sorted(expected + flipped)


def test_messages_annotations_and_docstrings_are_left_alone():
    lines = {mutant.line for mutant in find_mutants("parts.py", LIBRARY)}
    assert lines == {6, 8, 11, 12}
    defaults = [after for after in changes(LIBRARY) if after.startswith("def")]
    assert defaults == [f'def third(x: "1 + 1" = {n}) -> "2 * 3":' for n in (4, 2)]


def test_a_mutant_is_another_program():
    file = ROOT / "pgeom/geometry/bounds.py"
    source = file.read_text()
    before = ast.dump(ast.parse(source))
    mutants = find_mutants("bounds.py", source)
    assert all(ast.dump(ast.parse(mutated(m, source))) != before for m in mutants[::10])


def test_draws_are_fixed_and_of_distinct_places():
    mutants = find_mutants("parts.py", LIBRARY)
    assert draw(mutants, 4, seed=1) == draw(mutants, 6, seed=1)[:4] != draw(mutants, 4, seed=2)
    sites = [mutant.site for mutant in draw(mutants, 100, seed=0)]
    assert len(sites) == len(set(sites)) == len({mutant.site for mutant in mutants})


def test_what_the_tests_notice_is_killed_and_the_rest_survives(project, tmp_path):
    mutants = find_mutants("pgeom/geometry/parts.py", LIBRARY)
    equivalents = {("pgeom/geometry/parts.py", "return x / 3 + 0 * x", "*"): "for the test"}
    chosen = [m for m in mutants if m.line == 8] + [m for m in mutants if m.line >= 11][:3]
    process = trial.Trial(project, tmp_path / "copy", tmp_path)
    answers = trial.try_mutants(process, chosen, equivalents, float("inf"), io.StringIO())
    assert [answer.outcome for answer in answers] == [KILLED] * 3 + [SURVIVED] * 2 + [EQUIVALENT]
    assert answers[0].place == "pgeom/geometry/parts.py:8"
    assert (project / "pgeom/geometry/parts.py").read_text() == LIBRARY
    # known answers are not tried again, but a survivor is once there are more tests
    (project / "tests/geometry/test_parts.py").write_text(
        TESTS + "\n\ndef test_third():\n    assert third() == 1\n"
    )
    again = trial.Trial(project, tmp_path / "second", tmp_path)
    answers = trial.try_mutants(again, chosen, equivalents, float("inf"), io.StringIO())
    assert [answer.outcome for answer in answers] == [KILLED] * 5 + [EQUIVALENT]


SLOW = """from time import process_time

from pgeom.geometry.parts import half, third


def test_slow():
    begun = process_time()
    while process_time() - begun < 0.3:
        assert third(1) == 1 / 3


def test_half_first():
    assert half(3) == 1.5


def test_other():
    assert third(3) == 1
"""


def test_the_quickest_tests_that_run_the_line_are_chosen(project, tmp_path):
    (project / "tests/geometry/test_parts.py").write_text(SLOW)
    runs.copy_project(project, tmp_path / "copy")
    coverage = Coverage(tmp_path / "copy", "geometry", tmp_path / "coverage.json")
    mutant = next(m for m in find_mutants("pgeom/geometry/parts.py", LIBRARY) if m.line == 12)

    def choose(most):
        tests, seconds = coverage.choose(mutant, most)
        return [test.partition("::")[2] for test in tests], seconds

    # those in which the line ran come first, and none that is too slow, but never nothing
    tests, seconds = choose(60)
    assert tests == ["test_other", "test_slow", "test_half_first"] and 0.3 < seconds < 60
    assert choose(0.25)[0] == ["test_other", "test_half_first"]
    assert choose(-1)[0] == ["test_other"]


def test_constants_of_a_module_without_functions_are_tested_too(project, tmp_path):
    (project / "pgeom/geometry/limits.py").write_text("LIMIT = 2\n")
    (project / "tests/geometry/test_limits.py").write_text(
        "from pgeom.geometry.limits import LIMIT\n\n\ndef test_it():\n    assert LIMIT == 2\n"
    )
    mutants = find_mutants("pgeom/geometry/limits.py", "LIMIT = 2\n")
    process = trial.Trial(project, tmp_path / "copy", tmp_path)
    answers = trial.try_mutants(process, mutants, {}, float("inf"), io.StringIO())
    assert [answer.outcome for answer in answers] == [KILLED] * 2


def test_a_failing_test_is_told_before_anything_is_mutated(project, tmp_path):
    (project / "tests/geometry/test_parts.py").write_text(TESTS.replace("1.5", "1.6"))
    process = trial.Trial(project, tmp_path / "copy", tmp_path)
    mutants = find_mutants("pgeom/geometry/parts.py", LIBRARY)
    with pytest.raises(SystemExit, match="must pass before anything is mutated"):
        trial.try_mutants(process, mutants, {}, float("inf"), io.StringIO())


def test_the_report_counts_by_room_and_lists_survivors():
    answers = [Answer("geometry", f"a.py:{i}", "x", "y", KILLED) for i in range(8)]
    answers += [Answer("data", "b.py:3", "x < 1", "x <= 1", SURVIVED)]
    answers += [Answer("data", "b.py:4", "x", "y", EQUIVALENT, "the same")]
    out = io.StringIO()
    assert print_report(answers, 12, out) == pytest.approx(8 / 9)
    lines = out.getvalue().splitlines()
    assert lines[1].split() == ["geometry", "8", "8", "0", "0", "100.0%"]
    assert lines[3].split() == ["all", "10", "8", "1", "1", "88.9%"]
    assert lines[4] == "survived  b.py:3  x < 1  ->  x <= 1"
    assert lines[5].endswith("the same") and "2 of 12 were not tried" in lines[6]


def test_a_wrong_option_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--only", "kitchen"])
    assert stop.value.code == 2 and "kitchen" in capsys.readouterr().err


def test_every_explained_equivalent_is_a_mutant_of_today():
    path = Path(trial.__file__).with_name("equivalents.tsv")
    for (file, before, after), why in trial.read_equivalents(path).items():
        source = (ROOT / file).read_text()
        known = [shown(mutant, source) for mutant in find_mutants(file, source)]
        assert any(a == before and after in (b, trial.ANY) for a, b in known), (file, before, after)
        assert why

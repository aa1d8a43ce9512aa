"""A short torture of the commands, and a check that torture notices what it is there to notice."""

import random

import pytest

from tests.experiments.shell.test_command_line import commands as all_commands
from tests.torture import commands, exits, trials
from tests.torture.__main__ import main
from tests.torture.damages import DAMAGES
from tests.torture.trials import Bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("torture"), random.Random(0))


def test_no_command_that_keeps_records_is_spared():
    tortured = {words[0] for words in commands.COMMANDS.values()}
    spared = {name for _, name, _ in all_commands()} - tortured
    assert spared == {"experiments.speed", "experiments.replay"}  # which time, and change nothing


def test_damage_is_mended(bench):
    assert trials.damage("swapped logits", bench) == []


def test_a_killed_command_resumes(bench):
    assert trials.kill(commands.COMMANDS["noise"], "noise", bench) == []


def test_a_process_that_is_gone_at_a_write_resumes(bench):
    codes = []
    assert trials.end_at_write(6, codes, bench) == []
    assert codes == [exits.CODE]


def test_two_writers_do_not_meet(bench):
    assert trials.race("other seeds", 2, bench) == []


def test_damage_that_is_not_mended_is_noticed(bench, monkeypatch):
    monkeypatch.setattr(commands, "run", lambda words, out, cache, **options: (0, ""))
    assert trials.damage("a changed digit", bench) == [
        "the damage was not named",
        "the records are not those of an undisturbed run: records.jsonl",
    ]


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [(0, "", 0), (1, "", 1), (0, "Traceback (most recent call last)", 1), (139, "Traceback", 2)],
)
def test_codes_and_tracebacks_are_noticed(code, said, expected):
    assert len(commands.faults(code, said, allowed={0, 2})) == expected


def test_every_damage_changes_something(bench):
    good = bench.reference("noise", commands.COMMANDS["noise"])
    before = commands.records(good)
    for name, damage in DAMAGES.items():
        files = {path: path.read_bytes() for path in good.rglob("*") if path.is_file()}
        damage(good, random.Random(1))
        assert commands.records(good) != before, name
        for path, data in files.items():
            path.write_bytes(data)


def test_every_write_has_its_turn():
    ends = trials.kinds()["ends at a write"]
    numbers = []
    for code in (exits.CODE, exits.CODE, 0):
        number, codes = next(ends).args
        numbers.append(number)
        codes.append(code)
    assert numbers == [0, 1, 2] and next(ends, None) is None


def test_times_are_no_records(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "runtime").mkdir(parents=True)
        (tmp_path / name / "runtime/records.jsonl").write_text(f"seconds of {name}")
        (tmp_path / name / "proofs.json").write_text("{}")
    one, two = (commands.records(tmp_path / name) for name in ("one", "two"))
    assert one == two and len(one) == 2
    (tmp_path / "two/proofs.json").write_text('{"notes": []}')
    assert commands.records(tmp_path / "two") != one


def test_a_shortened_file_is_noticed(tmp_path):
    (tmp_path / "page.md").write_text("words")
    before = commands.sizes(tmp_path)
    assert commands.shortened(before) == []
    (tmp_path / "page.md").write_text("")
    assert commands.shortened(before) == ["page.md is empty"]


def test_the_command_prints_a_table_and_fails_if_a_trial_does(monkeypatch, capsys):
    planted = {"good": iter([lambda bench: []]), "bad": iter([lambda bench: ["lost"]])}
    monkeypatch.setattr("tests.torture.__main__.kinds", lambda: planted)
    assert main(["--minutes", "1"]) == 1
    printed = capsys.readouterr().out
    assert "good" in printed and "bad: lost" in printed

"""Damage is found by checksums, named, set aside, and harms no other run."""

import io
import json
import os
import pickle
import shutil

import numpy as np
import pytest

from experiments.engine import lines
from experiments.engine.damage import DAMAGED, set_damage_aside
from experiments.engine.lines import encode
from experiments.engine.records import Store
from experiments.shell.errors import UsageError

MEMBERS = {"one.npz": ("a", "b"), "two.npz": ("c", "d")}
SECOND = "records.jsonl, line 2: "


def record(identity):
    return {"identity": identity, "loss": "ce", "nll": 0.25, "made_from": {"loss": "1f"}}


def arrays(*identities):
    logits = {x: np.full((3, 2), ord(x) / 3, np.float32) for x in identities}
    return {**logits, "labels": np.arange(3)}


def fill(folder, present=()):
    """Two members of two runs each, but for those already present."""
    store = Store(folder)
    store.describe({"loss": {"1f": {"name": "ce"}}})
    for member, runs in MEMBERS.items():
        missing = [run for run in runs if run not in present]
        if missing:
            store.add(member, [record(run) for run in missing], arrays(*missing))


def state(folder):
    """Lines in any order, and the bytes of everything else but what was set aside."""
    files = [path for path in folder.rglob("*") if path.is_file() and DAMAGED not in path.parts]
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {**found, "records.jsonl": sorted(found["records.jsonl"].splitlines())}


def change_line(change):
    """The damage that changes the second line, with its line break, of the file of records."""

    def damage(folder):
        path = folder / "records.jsonl"
        texts = path.read_bytes().splitlines(keepends=True)
        texts[1] = change(texts[1])
        path.write_bytes(b"".join(texts))

    return damage


def without_key(line):
    fields = json.loads(line)
    del fields["nll"]
    return json.dumps(fields).encode() + b"\n"


def without_checksum(line):
    fields = json.loads(line)
    del fields["checksum"]
    return json.dumps(fields).encode() + b"\n"


def rewrite(line, **changes):
    """A line with a good checksum that no store has written."""
    fields = json.loads(line)
    del fields["checksum"]
    return encode({**fields, **changes})


def seal(body):
    """The same of what is no JSON."""
    return body + lines.MARK + lines._checksum(body) + b'"}\n'


def change_file(change, name="logits/one.npz"):
    """The damage that changes the bytes of one file."""

    def damage(folder):
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return damage


def swap(folder):
    one, two, aside = (folder / "logits" / name for name in ("one.npz", "two.npz", "aside"))
    os.rename(one, aside)
    os.rename(two, one)
    os.rename(aside, two)


def exchange_logits(folder):
    """The logits of one run under the name of another."""
    found = arrays("a", "b")
    np.savez(folder / "logits/one.npz", a=found["b"], b=found["a"], labels=found["labels"])


def replace_array(name, array):
    def damage(folder):
        np.savez(folder / "logits/one.npz", allow_pickle=True, **{**arrays("a", "b"), name: array})

    return damage


def bare_array():
    file = io.BytesIO()
    np.save(file, np.ones(3))
    return file.getvalue()


def tear_line(folder):
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-40])


LOGITS = "records.jsonl, lines 1–2: logits/one.npz "
# what is damaged, which runs that costs, and what is said
CASES = {
    "digit": (change_line(lambda x: x.replace(b"0.25", b"0.35")), "b", SECOND + "does not match"),
    "key": (change_line(without_key), "b", SECOND + "does not match its checksum"),
    "NaN": (change_line(lambda x: x.replace(b"0.25", b"NaN")), "b", SECOND + "does not match"),
    "torn": (tear_line, "d", "records.jsonl, line 4: is torn"),
    "torn inside": (change_line(lambda x: x[:40] + b"\n"), "b", SECOND + "has no checksum"),
    "joined": (change_line(lambda x: x[:-1]), "bc", SECOND + "does not match"),
    "blank": (change_line(lambda x: b" \n" + x), "", SECOND + "is blank"),
    "zeros": (change_line(lambda x: bytes(len(x) - 1) + b"\n"), "b", SECOND + "has no checksum"),
    "not UTF-8": (change_line(lambda x: x.replace(b"ce", b"\xff\xfe")), "b", SECOND + "does not"),
    "U+2028": (change_line(lambda x: x.replace(b"ce", "c\u2028e".encode())), "b", SECOND),
    "twice": (change_line(lambda x: x + x), "", "records.jsonl, line 3: repeats line 2"),
    "old": (change_line(without_checksum), "b", SECOND + "has no checksum"),
    "conflict": (
        change_line(lambda x: x + rewrite(x, nll=0.5)),
        "",
        "records.jsonl, line 3: is about the run of, and differs from, line 2",
    ),
    "no identity": (change_line(lambda x: rewrite(x, identity=None)), "b", SECOND + "is no record"),
    "no JSON": (change_line(lambda x: seal(b'{"a": [1')), "b", SECOND + "is no record"),
    "nested": (change_line(lambda x: seal(b'{"a": ' + b"[" * 10**5)), "b", SECOND + "is no record"),
    "truncated": (change_file(lambda x: x[:-100]), "ab", LOGITS + "cannot be read: BadZipFile"),
    "emptied": (change_file(lambda x: b""), "ab", LOGITS + "cannot be read: EOFError"),
    "deleted": (lambda folder: (folder / "logits/one.npz").unlink(), "ab", LOGITS + "is missing"),
    "swapped": (swap, "abcd", LOGITS + "has no logits of this run"),
    "exchanged": (exchange_logits, "ab", LOGITS + "does not match the checksum"),
    "pickle": (change_file(lambda x: pickle.dumps(x)), "ab", LOGITS + "cannot be read"),
    "pickle inside": (replace_array("b", np.array([None])), "b", "one.npz cannot be read: Value"),
    "an array": (replace_array("b", np.ones((3, 2))), "b", "line 2: logits/one.npz does not match"),
    "labels": (replace_array("labels", np.ones(3, int)), "ab", LOGITS + "does not match"),
    "no archive": (change_file(lambda x: bare_array()), "ab", LOGITS + "cannot be read"),
    "manifest": (
        change_file(lambda x: x.replace(b"ce", b"gc"), "manifest.json"),
        "",
        "manifest.json does not match its checksum",
    ),
    "manifest emptied": (change_file(lambda x: b"", "manifest.json"), "", "does not match"),
    "manifest a list": (change_file(lambda x: b"[]", "manifest.json"), "", "does not match"),
    "manifest bytes": (change_file(lambda x: b"\xff", "manifest.json"), "", "does not match"),
    "no manifest": (
        lambda folder: (folder / "manifest.json").unlink(),
        "",
        "manifest.json is missing; it is written again",
    ),
}
SET_NOTHING_ASIDE = {"no manifest"}


@pytest.mark.parametrize("case", CASES)
def test_damage_is_named_set_aside_and_costs_only_its_runs(case, tmp_path):
    damage, lost, message = CASES[case]
    fill(tmp_path / "good")
    shutil.copytree(tmp_path / "good", tmp_path / "bad")
    damage(tmp_path / "bad")
    notes = set_damage_aside(tmp_path / "bad")
    assert any(message in note for note in notes) and not any("\n" in note for note in notes)
    left = Store(tmp_path / "bad").records
    assert set(left) == set("abcd") - set(lost)
    aside = tmp_path / "bad" / DAMAGED
    assert aside.is_dir() == (case not in SET_NOTHING_ASIDE)
    again = set_damage_aside(tmp_path / "bad")
    assert not [note for note in again if "manifest.json is missing" not in note]
    fill(tmp_path / "bad", present=left)
    assert state(tmp_path / "bad") == state(tmp_path / "good")
    assert set_damage_aside(tmp_path / "bad") == []


def test_what_was_set_aside_is_all_there(tmp_path):
    fill(tmp_path)
    path, logits = tmp_path / "records.jsonl", tmp_path / "logits/two.npz"
    texts = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([b"old\n", *texts, texts[0][:30]]))
    logits.write_bytes(b"no archive")
    set_damage_aside(tmp_path)
    kept = (tmp_path / DAMAGED / "records.jsonl").read_bytes()
    assert kept == b"old\n" + texts[2] + texts[3] + texts[0][:30] + b"\n"
    assert (tmp_path / DAMAGED / "two.npz").read_bytes() == b"no archive"
    fill(tmp_path, present="ab")
    logits.write_bytes(b"nor this")
    set_damage_aside(tmp_path)
    assert (tmp_path / DAMAGED / "two.npz").read_bytes() == b"no archive"
    assert (tmp_path / DAMAGED / "two-2.npz").read_bytes() == b"nor this"


def test_lines_of_one_flaw_are_one_line(tmp_path):
    fill(tmp_path)
    path = tmp_path / "records.jsonl"
    texts = path.read_bytes().splitlines(keepends=True)
    old = [without_checksum(text) for text in texts]
    path.write_bytes(b"".join([*old, texts[1], old[3]]))
    (note,) = set_damage_aside(tmp_path)
    where = f"set aside in {tmp_path / DAMAGED}"
    assert note == f"{path}, lines 1–4, 6: has no checksum; {where}"


def test_of_conflicting_lines_the_one_with_its_logits_counts(tmp_path):
    fill(tmp_path)
    path = tmp_path / "records.jsonl"
    texts = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(rewrite(texts[0], logits_checksum="0", nll=9.0) + b"".join(texts))
    (note,) = set_damage_aside(tmp_path)
    assert "line 1: logits/one.npz does not match the checksum of this run's logits" in note
    assert path.read_bytes() == b"".join(texts)
    assert not (tmp_path / DAMAGED / "one.npz").exists()  # in which nothing is wrong


def test_a_name_in_a_record_is_never_a_path(tmp_path):
    fill(tmp_path / "out")
    shutil.copy(tmp_path / "out/logits/one.npz", tmp_path / "precious.npz")
    before = (tmp_path / "precious.npz").read_bytes()
    for name in ("../../precious.npz", str(tmp_path / "precious.npz")):
        change_line(lambda text, name=name: rewrite(text, logits_file=name))(tmp_path / "out")
        (note,) = set_damage_aside(tmp_path / "out")
        assert f"logits/{name} is missing" in note
        assert (tmp_path / "precious.npz").read_bytes() == before
        fill(tmp_path / "out", present="acd")


def test_what_a_killed_process_left_unfinished_is_removed(tmp_path):
    fill(tmp_path)
    good = state(tmp_path)
    for name in ("records.jsonl", "manifest.json", "logits/one.npz", "logits/three.npz"):
        (tmp_path / f"{name}.part").write_bytes(b"half")
    assert set_damage_aside(tmp_path) == []
    assert state(tmp_path) == good


def test_a_folder_without_records_is_sound(tmp_path):
    assert set_damage_aside(tmp_path / "new") == []
    assert not (tmp_path / "new").exists()


def test_what_the_disk_refuses_is_no_damage(tmp_path):
    fill(tmp_path)
    (tmp_path / "logits/one.npz").unlink()
    (tmp_path / "logits/one.npz").mkdir()
    with pytest.raises(UsageError, match=r"cannot read .*one.npz': Is a directory"):
        set_damage_aside(tmp_path)
    assert (tmp_path / "logits/one.npz").is_dir() and not (tmp_path / DAMAGED).exists()


def test_a_reader_is_told_of_damaged_logits_and_manifests(tmp_path):
    fill(tmp_path)
    exchange_logits(tmp_path)
    with pytest.raises(UsageError, match=r"one.npz does not match .* \(a\): rerun the command"):
        Store(tmp_path).logits("one.npz")
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UsageError, match=r"manifest.json is damaged: rerun the command"):
        Store(tmp_path).manifest  # noqa: B018

"""The settings, the cache and the devices that an entry point makes of its environment."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from pgeom import environment
from pgeom.frontend.errors import UsageError


def test_every_setting_is_the_default_of_jax():
    code = "import jax; from pgeom import environment; before = dict(jax.config.values); "
    code += "environment.fix_numbers(x64=False); assert dict(jax.config.values) == before"
    free = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    subprocess.run([sys.executable, "-c", code], env=free, check=True)


@pytest.mark.parametrize("given", [None, "", "relative/folder"])
def test_a_cache_home_that_is_not_absolute_is_none(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if given is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert environment.cache_folder() == tmp_path / "home/.cache/pgeom"
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_cache_that_cannot_be_written_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert environment.cache_folder() == tmp_path / "pgeom"
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    before = jax.config.jax_compilation_cache_dir
    environment.use_cache(min_seconds=0.0)
    assert environment.cache_folder() is None
    assert jax.config.jax_compilation_cache_dir == before


def test_nobody_s_home_has_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert environment.cache_folder() is None


@pytest.mark.parametrize("error", [AssertionError(), RuntimeError("Unknown backend cuda")])
def test_devices_that_are_not_there_are_one_line(error, monkeypatch):
    def missing():
        raise error

    assert environment.count_devices() == jax.device_count()
    monkeypatch.setattr(jax, "device_count", missing)
    with pytest.raises(UsageError, match=r"^JAX_PLATFORMS: there is no device for "):
        environment.count_devices()


@pytest.mark.parametrize(
    ("given", "flags"), [(None, []), (" ", []), (" --a  --b", ["--a", "--b"]), ("empty", [])]
)
def test_flags_of_xla(given, flags, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    if given is not None:
        monkeypatch.setenv("XLA_FLAGS", given)
    assert environment.read_xla_flags() == flags


@pytest.mark.parametrize("name", ["missing", "folder", "binary", "text"])
def test_a_file_without_flags_is_one_line(name, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "text").write_text("no flags")
    monkeypatch.setenv("XLA_FLAGS", str(tmp_path / name))
    with pytest.raises(UsageError, match=rf"^XLA_FLAGS: .* file '.*{name}'"):
        environment.count_devices()

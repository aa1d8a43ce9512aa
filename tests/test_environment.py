"""The cache and the devices that an entry point makes of its environment."""

from pathlib import Path

import jax
import pytest

from pgeom import environment
from pgeom.frontend.errors import UsageError


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

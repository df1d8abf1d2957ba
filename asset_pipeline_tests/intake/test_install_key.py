"""The key behind report ids."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from asset_pipeline.errors import ConfigurationError
from asset_pipeline.intake.install_key import install_key
from asset_pipeline.settings import Settings


def test_the_key_is_made_once_and_only_its_owner_can_read_it(tmp_path):
    settings = Settings(home=tmp_path)
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: install_key(settings), range(16)))
    assert len(keys) == 1
    assert len(keys.pop()) == 32
    path = tmp_path / "keys" / "install.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["install.key"]


def test_the_key_of_the_settings_comes_first(tmp_path):
    assert install_key(Settings(home=tmp_path, install_key="ab" * 16)) == b"\xab" * 16
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("key", ["not hex", "abcd"])
def test_an_unusable_key_is_a_configuration_error_that_does_not_show_it(tmp_path, key):
    with pytest.raises(ConfigurationError) as caught:
        install_key(Settings(home=tmp_path, install_key=key))
    assert key not in str(caught.value)


def test_a_damaged_key_file_is_never_replaced(tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "install.key").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError):
        install_key(Settings(home=tmp_path))
    assert (tmp_path / "keys" / "install.key").read_bytes() == b"\xff\xfe"

"""The user's folders, and what ships."""

from __future__ import annotations

from pathlib import Path

from tui_agent.settings.folders import Folders, config_folder, themes_folder, user_folders, why_not_writable


def test_one_variable_puts_everything_under_one_folder(tmp_path):
    folders = user_folders({"TUI_AGENT_HOME": str(tmp_path)})
    assert folders == Folders(tmp_path / "config", tmp_path / "data", tmp_path / "cache", tmp_path / "state")


def test_a_relative_home_counts_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert user_folders({"TUI_AGENT_HOME": "mine"}).data == tmp_path / "mine" / "data"


def test_without_it_the_platforms_own_folders_are_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.setattr("sys.platform", "linux")
    folders = user_folders({})
    assert folders.config.parts[-1] == "tui-agent"
    assert len({folders.config, folders.data, folders.cache}) == 3


def test_a_folder_says_why_nothing_can_be_kept_in_it(tmp_path):
    assert why_not_writable(tmp_path / "new") == ""
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "file").write_text("")
    why = why_not_writable(tmp_path / "file" / "home")
    assert str(tmp_path / "file" / "home") in why
    assert "TUI_AGENT_HOME" in why


def test_what_ships_is_found_beside_the_code():
    assert (config_folder() / "settings.toml").is_file()
    assert themes_folder().name == "themes"
    assert Path(__file__).parents[2] in config_folder().parents

"""`tui-agent config` and `tui-agent trust`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.settings.folders import user_folders
from tui_agent.settings.schema import entries


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / ".tui-agent").mkdir(parents=True)
    (folder / ".tui-agent" / "settings.toml").write_text('theme = "theirs"\n')
    monkeypatch.chdir(folder)
    return folder.resolve()


def user_settings(text: str) -> Path:
    file = user_folders().config / "settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_path_says_where_each_lies(run, workspace, home):
    said = run("config", "path").out
    for place in (
        home / "config" / "settings.toml",
        home / "data",
        workspace / ".tui-agent" / "settings.toml",
    ):
        assert str(place) in said
    assert "(not trusted: ignored)" in said


def test_show_lists_every_setting_and_where_it_comes_from(run, workspace, monkeypatch):
    file = user_settings("max_steps = 3\n")
    monkeypatch.setenv("TUI_AGENT_BUNDLING__DEPTH", "2")
    lines = run("config", "show", "--set", "theme=light").out.splitlines()
    assert [line.partition(" = ")[0] for line in lines] == list(entries())
    assert f"max_steps = 3  # from {file}" in lines
    assert "bundling.depth = 2  # from the environment" in lines
    assert 'theme = "light"  # from --set' in lines
    assert 'protocol = "auto"' in lines


def test_check_names_every_fault_and_ends_with_2(run, workspace, monkeypatch):
    file = user_settings("max_stepz = 3\nmax_steps = 0\n")
    theme = user_folders().config / "themes" / "mine.toml"
    theme.parent.mkdir()
    theme.write_text("[broken\n")
    monkeypatch.setenv("TUI_AGENT_THEEM", "x")
    (workspace / ".tui-agent" / "settings.toml").write_text("nothing\n")
    outcome = run("config", "check")
    assert outcome.status == 2
    lines = outcome.err.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith(f"tui-agent: {file}, line 1: there is no setting `max_stepz`: did you mean")
    assert lines[1].startswith(f"tui-agent: {file}, line 2: `max_steps` cannot be 0: write a whole number")
    assert "did you mean `TUI_AGENT_THEME`?" in lines[2]
    assert str(workspace / ".tui-agent" / "settings.toml") in lines[3]
    assert str(theme) in lines[4]


def test_check_of_a_sound_configuration_is_0(run, workspace):
    outcome = run("config", "check")
    assert (outcome.status, outcome.err) == (0, "")


def test_trust_brings_the_workspaces_settings_into_force(run, workspace):
    assert 'theme = "dark"' in run("config", "show").out
    would = run("trust")
    assert would.out.startswith("Would trust ") and "--yes" in would.err and run("trust", "--list").out == ""
    said = run("trust", "--yes").out
    assert str(workspace) in said
    assert ".tui-agent/settings.toml" in said
    assert (
        f'theme = "theirs"  # from {workspace / ".tui-agent" / "settings.toml"}' in run("config", "show").out
    )
    assert run("trust", "--list").out == f"{workspace}\n"


def test_list_says_what_has_become_of_a_workspace(run, workspace):
    run("trust", str(workspace), "--yes")
    (workspace / ".tui-agent" / "settings.toml").write_text("")
    assert "changed since" in run("trust", "--list").out
    (workspace / ".tui-agent" / "settings.toml").unlink()
    (workspace / ".tui-agent").rmdir()
    workspace.rename(workspace.with_name("moved"))
    assert "gone" in run("trust", "--list").out


def test_revoke_takes_it_back_also_from_a_folder_that_has_gone(run, workspace):
    run("trust", "--yes")
    workspace.rename(workspace.with_name("moved"))
    assert "No longer trusted" in run("trust", str(workspace), "--revoke").out
    none = run("trust", "--list")
    assert (none.out, none.err) == ("", "No workspace is trusted.\n")
    assert "It was not trusted" in run("trust", str(workspace), "--revoke").out


def test_trust_that_cannot_be_kept_is_one_sentence(run, workspace, home, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv("TUI_AGENT_HOME", str(home / "file"))
    outcome = run("trust", "--yes")
    assert outcome.status == 2
    assert "cannot be written" in outcome.sentence


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("system-prompt.json", '{"sections": [{"id": "mine"}]}', "a section needs `id` and `text`"),
        ("system-prompt.json", '{"section": []}', "there is no `section` in it"),
        ("planning-prompt.json", "[", "not valid JSON"),
        ("planning-prompt.json", "[" * 200_000, "nested too deeply"),
        ("system-prompt.json", "null", "it is not a JSON object"),
        ("response-schema.json", '{"properties": 1}', "`properties` is not an object"),
        ("keys.toml", '[review]\nbanana = "z"\n', "line 2: there is no action review.banana"),
        ("keys.toml", 'quit = "f5"\n', "quit is outside a table"),
        ("keys.toml", "[chat]\nsend = 3\n", "line 2: the keys of chat.send are not text"),
        ("keys.toml", '[review]\nskip = "a"\n', "the key a is bound to review.apply and to review.skip"),
        (
            "keys.toml",
            '[chat]\ncopy = "f8"\n',
            "keys.toml, line 2: the key f8 is bound to changes.apply_all and to chat.copy",
        ),
        ("keys.toml", '[session]\nfork = "d"\n', "and to session.fork"),
        ("keys.toml", '[review]\nskip = ["leader r"]\n', "the key leader r is bound to"),
        ("response-schema.json", '{"type": "strings"}', "`type` is not valid in a JSON schema"),
        (
            "response-schema.json",
            '{"properties": {"message": {"type": "txt"}}}',
            "`properties.message.type` is not",
        ),
        (
            "planning-schema.json",
            '{"properties": {"actions": {"items": 5}}}',
            "is not valid in a JSON schema",
        ),
        ("settings.toml", 'theme = "darc"\n', "there is no theme darc: did you mean dark?"),
        ("settings.toml", "[context]\ncondense_at = 0.3\n", "context.reset_to is 0.5"),
    ],
)
def test_check_reads_prompts_keys_the_theme_and_what_belongs_together(
    run, tmp_path, monkeypatch, name, text, says
):
    monkeypatch.chdir(tmp_path)
    assert run("config", "check").status == 0
    file = user_folders().config / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    outcome = run("config", "check")
    assert outcome.status == 2 and says in outcome.err

"""`tui-agent doctor`: what it finds, and that it never tells a key."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tui_agent.model.client import Abilities
from tui_agent.session import doctor as doctor_module
from tui_agent.session import doctor as surroundings_module
from tui_agent.session.doctor import key_names, packages, terminal


@pytest.fixture(autouse=True)
def nobody_answers(monkeypatch):
    """No local server is looked for, and the model's process is not started."""

    async def nothing(memory: object):
        return ()

    async def started(name: str, model: object):
        return doctor_module.Helper(True, 1.5), Abilities(name, window=1000, known=True), ""

    monkeypatch.setattr(doctor_module, "discover", nothing)
    monkeypatch.setattr(doctor_module, "_process", started)


def test_json_is_one_object_with_all_of_it(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-do-not-tell")
    monkeypatch.setenv("TUI_AGENT_MODEL", "openai/x")
    outcome = run("doctor", "--json")
    report = json.loads(outcome.out)
    assert outcome.status == 0
    assert report["ok"] is True
    assert report["workspace"] == str(tmp_path.resolve())
    assert report["surroundings"]["git"].startswith("git version")
    assert report["surroundings"]["packages"]["textual"]
    assert report["model"]["name"] == "openai/x"
    assert report["model"]["window"] == 1000
    assert "OPENAI_API_KEY" in report["model"]["keys"]
    assert report["trial"] == {"isolated": "overlay", "why": ""}
    assert "sk-do-not-tell" not in outcome.out


def test_words_say_the_same_and_no_key(run, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-do-not-tell")
    outcome = run("doctor")
    assert outcome.status == 0
    assert "OPENAI_API_KEY" in outcome.out
    assert "no model is configured" in outcome.out
    assert "sk-do-not-tell" not in outcome.out + outcome.err


def test_problems_are_named_and_end_with_1(run, monkeypatch, home):
    settings = home / "config" / "settings.toml"
    settings.parent.mkdir()
    settings.write_text("[broken\n")
    (home / "data").write_text("")
    monkeypatch.setenv("PATH", str(home))
    outcome = run("doctor")
    problems = [line for line in outcome.out.splitlines() if line.startswith("problem")]
    assert outcome.status == 1
    assert len(problems) == 3
    assert "git was not found" in problems[0]
    assert "cannot be written" in problems[1]
    assert f"{settings}, line 1" in problems[2]


def test_a_model_that_nobody_knows_asks_for_its_window(run, monkeypatch):
    async def unknown(name: str, model: object):
        return doctor_module.Helper(True, 1.5), Abilities(name), ""

    monkeypatch.setattr(doctor_module, "_process", unknown)
    monkeypatch.setenv("TUI_AGENT_MODEL", "mine/own")
    assert "set context.window" in run("doctor").out
    monkeypatch.setenv("TUI_AGENT_CONTEXT__WINDOW", "8000")
    assert "8,000 tokens" in run("doctor").out


def test_packages_are_those_the_program_stands_on():
    found = packages()
    assert found["litellm"]
    assert "pytest" not in found
    assert None not in found.values()


def test_a_git_that_does_not_answer_is_no_git(monkeypatch, tmp_path):
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\nexit 3\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert surroundings_module.git_version() == ""


@pytest.mark.parametrize(
    ("environ", "colours"),
    [
        ({"TERM": "xterm"}, 16),
        ({"TERM": "xterm-256color"}, 256),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, 16_777_216),
        ({"TERM": "xterm", "COLORTERM": "truecolor", "NO_COLOR": "1"}, 0),
        ({"TERM": "dumb"}, 0),
        ({}, 0),
    ],
)
def test_colours_are_what_the_environment_promises(environ, colours):
    assert terminal(environ).colours == colours


def test_keys_are_named_once_and_only_where_they_hold_something():
    assert key_names({"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "", "OTHER_KEY": "x"}) == (
        "OPENAI_API_KEY",
    )


def test_a_home_is_made_where_there_is_none(run, home: Path):
    run("doctor")
    assert (home / "data").is_dir()


KEYS = {
    "OPENAI_API_KEY": "sk-proj-Ab12Cd34Ef56Gh78Ij90",
    "GITHUB_TOKEN": "ghp_abcdefghijklmnop0123456789abcdefghij",
    "MY_SERVICE_PASSWORD": "seven-plain-words",
}


def test_a_bundle_holds_log_settings_and_versions_and_no_secret(run, monkeypatch, home, tmp_path):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (home / "config").mkdir()
    planted = (
        f'model = "openai/{KEYS["OPENAI_API_KEY"]}"\ntheme = "light"\napi_key = "{KEYS["GITHUB_TOKEN"]}"\n'
    )
    (home / "config" / "settings.toml").write_text(planted)
    (home / "state").mkdir()
    older = home / "state" / "debug.log.1"
    older.write_text(f"a line that an older version left as it was: {KEYS['MY_SERVICE_PASSWORD']}\n")
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(doctor_module, "surroundings", lambda: {}[KEYS["OPENAI_API_KEY"]])
        assert "unexpected error: KeyError" in run("doctor").sentence
    monkeypatch.setenv("HOME", str(tmp_path))
    outcome = run("doctor", "--json", "--bundle", "report.zip")
    assert json.loads(outcome.out)["folders"]["state"] == str(home / "state")
    assert "check it" in outcome.err
    bundle = tmp_path / "report.zip"
    assert bundle.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(bundle) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert sorted(texts) == ["debug.log", "debug.log.1", "doctor.json", "settings.toml"]
    assert json.loads(texts["doctor.json"])["surroundings"]["packages"]["litellm"]
    assert 'theme = "light"  # from ' in texts["settings.toml"]
    assert "KeyError" in texts["debug.log"] and "Traceback" in texts["debug.log"]
    assert not [(name, key) for name, text in texts.items() for key in KEYS.values() if key in text]
    assert str(tmp_path) not in texts["doctor.json"]


def test_a_bundle_that_cannot_be_written_says_so(run, tmp_path):
    assert "cannot be written" in run("doctor", "--bundle", str(tmp_path)).sentence
    assert "cannot be written" in run("doctor", "--bundle", "/nowhere/x.zip").sentence

"""`tui-agent places`: the steps of a working place, and the remedy for a failed one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import run_here

from tui_agent.settings.folders import user_folders


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "far"))
    monkeypatch.chdir(folder)
    return folder


def configured(*tables: str) -> None:
    folder = user_folders().config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.toml").write_text("".join(f"[[places]]\n{table}\n" for table in tables))


def test_each_step_of_a_place_that_works(work: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (work / "compose.yaml").touch()
    in_project = r'''run = "sh -c 'test -e compose.yaml && cd \"$0\" && exec \"$@\"' {view} {command}"'''
    configured(
        f'name = "box"\n{in_project}',
        'name = "host"\nrun = "env {command}"\ncopy = "bundle"\nmodel = true',
    )
    listed = run_here(capfd, ["places", "list"])
    assert "box" in listed.out and "env {command}  (also for the model)" in listed.out
    done = run_here(capfd, ["places", "test", "--json"])
    steps = [json.loads(line) for line in done.out.splitlines()]
    assert [(one["place"], one["step"], one["ok"]) for one in steps] == [
        (place, step, True) for place in ("box", "host") for step in ("reach", "run", "stop", "speed")
    ], done.out
    assert done.status == 0
    assert "MB/s" in steps[-1]["words"]
    assert [path.name for path in work.iterdir()] == ["compose.yaml"]


@pytest.mark.parametrize(
    ("table", "step", "said", "remedy"),
    [
        ('run = "no-engine {command}"', "reach", "No such file", "in a shell"),
        ("run = \"sh -c 'exit 125' {command}\"", "reach", "did not run a command", "in a shell"),
        ('run = "sh -c true"', "reach", "{command} has to be one word", "correct `run`"),
        ('run = "env -C / {command}"\\n#{view}', "run", "did not find the copy", "-v {view}:/app"),
        ('run = "sh -c \'\\"$@\\"; true\' x {command}"', "", "", ""),
        ('run = "cp -r {view} /nowhere/{command}"', "reach", "{command} has to be one word", "correct `run`"),
        ('run = "ssh {command}"', "reach", "ssh reaches no folder", "rsync"),
    ],
)
def test_the_first_failed_step_has_a_remedy(
    work: Path, table: str, step: str, said: str, remedy: str, capfd: pytest.CaptureFixture[str]
) -> None:
    configured('name = "app"\n' + table.replace("\\n", "\n"))
    done = run_here(capfd, ["places", "test", "app"])
    if step:
        line = next(line for line in done.out.splitlines() if "failed" in line)
        assert done.status == 1
        assert line.split()[:3] == ["app", "failed", step] and said in line and remedy in line
    else:
        assert done.status == 0, done.out  # The script reports the status, so a lost one does not matter.


def test_a_place_that_nobody_configured(work: Path, capfd: pytest.CaptureFixture[str]) -> None:
    configured('name = "app"\nrun = "sh -c {command}"')
    done = run_here(capfd, ["places", "test", "other"])
    assert done.status != 0
    assert "There is no place other" in done.err and "choose one of app" in done.err

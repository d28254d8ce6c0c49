"""Every later version opens logs, settings and keys of an earlier one: each folder here is a home of that version."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from support.program import json_lines, of_type, run
from support.provider import Answer, Provider

from tui_agent.log import directory, log, transfer
from tui_agent.log.snapshot import read_state
from tui_agent.settings import loading
from tui_agent.store import events as e
from tui_agent.ui.keys.keymap import load_keys

VERSIONS = sorted(path for path in Path(__file__).parent.iterdir() if (path / "data").is_dir())


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def version(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_its_log_is_read_in_full_and_its_session_goes_on(version: Path, home: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "sample"
    workspace.mkdir()
    (workspace / "api.py").write_text("import time\n\n\ndef fetch(url):\n    return get(url, timeout=5)\n")
    session = _adopted(version, home, workspace)
    assert read_state(directory.folder_of(home / "data", session) / directory.LOG).lost == ()
    with Provider() as provider:
        provider.answer(Answer("Still five seconds."))
        done = run(
            *("run", "--session", session, "--workspace", str(workspace), "--json", "And now?"),
            folder=workspace,
            environment={**provider.environment, "ANTHROPIC_API_KEY": "test"},
        )
        assert done.returncode == 0, done.stderr
        (response,) = of_type(json_lines(done), "response")
        assert response["message"] == "Still five seconds."
        (asked,) = provider.requests
    sent = msgspec.json.encode(asked.body["messages"]).decode()
    for words in (
        "Add a timeout to fetch",
        "I look at the file.",
        "It waits five seconds at most.",
        "toolu_02",
    ):
        assert words in sent
    assert '"thinking"' not in sent, "it was kept without its place in the reply"


def _adopted(version: Path, home: Path, workspace: Path) -> str:
    """The session of that version, in today's home and in a workspace of the test; its id."""
    shutil.copytree(version / "data" / "blobs", home / "data" / "blobs")
    (folder,) = (version / "data" / "sessions").iterdir()
    events = list(log.events_of(folder / directory.LOG, []))
    at = {"workspace": str(workspace), "started_from": str(workspace)}
    events = [
        msgspec.structs.replace(event, workspace=str(workspace))
        if isinstance(event, e.SessionStarted)
        else event
        for event in events
    ]
    transfer.write(home / "data", folder.name, events, turns=2, **at)
    return folder.name


def test_its_settings_and_keys_are_taken_without_a_fault(version: Path, home: Path) -> None:
    shutil.copytree(version / "config", home / "config")
    loaded = loading.load()
    assert loaded.faults == ()
    assert loaded.settings.max_steps == 9 and loaded.settings.context.window == 150_000
    assert loaded.settings.checks.commands[0].name == "tests"
    assert (loaded.settings.mode, loaded.settings.subtasks.begin) == ("edit", "manual")
    assert load_keys(folders=[home / "config"]).faults == ()

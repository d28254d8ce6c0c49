"""Task folders of other programs: what was said comes in, what is damaged is refused, nothing is removed unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui_agent.errors import SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.session import catalog, log
from tui_agent.session.importing import import_session
from tui_agent.session.sent import exchanges
from tui_agent.session.task_folder import CURRENT, LEGACY
from tui_agent.session.transcript import said

MESSAGES = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "<task>\nAdd a timeout\n</task>"},
            {"type": "text", "text": "<environment_details>\nfiles\n</environment_details>"},
        ],
        "ts": 1,
    },
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "I read the file.\n<read_file>a.py</read_file>"}],
    },
    {"role": "user", "content": [{"type": "text", "text": "[read_file for 'a.py'] Result:\n1: x"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "t1", "name": "attempt_completion", "input": {}},
            {
                "type": "text",
                "text": "<attempt_completion><result>\nAdded it.\n</result></attempt_completion>",
            },
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
    {"role": "user", "content": "<feedback>Thanks, and é?</feedback>"},
    {"role": "assistant", "content": "Done too."},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "task"
    made.mkdir()
    return made


def keep(folder: Path, name: str, value: object = MESSAGES) -> Path:
    (folder / name).write_text(json.dumps(value))
    return folder / name


@pytest.mark.parametrize("name", [CURRENT, LEGACY])
def test_what_both_sides_said_and_all_that_was_sent(tmp_path: Path, folder: Path, name: str) -> None:
    file = keep(folder, name)
    session = import_session(tmp_path, folder, tmp_path / "work")
    events = log.load(catalog.folder_of(tmp_path, session) / catalog.LOG).events
    told = [(m.kind, m.turn, m.text if m.kind == "person" else m.summary) for m in said(events)]
    assert told == [
        ("person", 1, "Add a timeout"),
        ("agent", 1, "I read the file."),
        ("agent", 1, "Added it."),
        ("person", 2, "Thanks, and é?"),
        ("agent", 2, "Done too."),
    ]
    texts = [
        json.loads(text)
        for exchange in exchanges(events, Blobs(tmp_path / "blobs"))
        for text in (*exchange.messages, *filter(None, [exchange.reply]))
    ]
    assert texts == MESSAGES
    assert file.exists()
    (entry,) = catalog.list_sessions(tmp_path)
    assert (entry.id, entry.turns, entry.first_request) == (session, 2, "Add a timeout")


def test_the_older_file_goes_only_when_asked_and_only_that(tmp_path: Path, folder: Path) -> None:
    older = keep(folder, LEGACY)
    import_session(tmp_path, folder, tmp_path, remove_legacy=True)
    assert not older.exists()
    older, newer = keep(folder, LEGACY), keep(folder, CURRENT)
    import_session(tmp_path, older, tmp_path, remove_legacy=True)
    assert newer.exists() and older.exists(), "the newer file was read, the older one may hold something else"


def test_the_older_file_stays_where_the_log_does_not_have_it_all(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = keep(folder, LEGACY)
    monkeypatch.setattr("tui_agent.session.log.events_of", lambda path: iter(()))
    with pytest.raises(SessionError, match="stays"):
        import_session(tmp_path, folder, tmp_path, remove_legacy=True)
    assert older.exists()


@pytest.mark.parametrize(
    "content",
    ["", "[", "{}", "[]", '[{"role": "user"}]', '[{"role": "x", "content": "y"}]', '[["a"]]', "\xff"],
)
def test_a_damaged_one_is_refused_and_left_untouched(tmp_path: Path, folder: Path, content: str) -> None:
    file = folder / LEGACY
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(SessionError, match="was not imported"):
        import_session(tmp_path, folder, tmp_path, remove_legacy=True)
    assert file.read_bytes() == content.encode("latin-1")
    assert catalog.list_sessions(tmp_path) == []


def test_a_folder_without_either(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(SessionError, match="not a task folder"):
        import_session(tmp_path, folder, tmp_path)

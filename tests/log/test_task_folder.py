"""Task folders of other programs: what was said comes in, what is damaged is refused, nothing is removed unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import run_here
from support.logs import load
from support.sessions import model_of, open_session, reply
from support.trees import make_tree

from tui_agent.context.prompt import SUMMARY
from tui_agent.errors import SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.log import catalog, directory
from tui_agent.log.snapshot import messages_of
from tui_agent.log.task_folder import CURRENT, LEGACY, METADATA
from tui_agent.log.transfer import exchanges, import_session
from tui_agent.model.parts import text_of
from tui_agent.settings.folders import user_folders

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
    events = load(directory.folder_of(tmp_path, session) / directory.LOG).events
    told = [(m.kind, m.turn, m.text if m.kind == "person" else m.summary) for m in messages_of(events)]
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
    import_session(tmp_path, folder, tmp_path, remove_legacy=True)
    assert newer.exists() and older.exists(), "the newer file was read, the older one may hold something else"
    import_session(tmp_path, older, tmp_path, remove_legacy=True)
    assert newer.exists() and not older.exists()


def test_the_older_file_stays_where_the_log_does_not_have_it_all(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = keep(folder, LEGACY)
    monkeypatch.setattr("tui_agent.log.log.events_of", lambda path: iter(()))
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


def test_where_the_newer_file_is_damaged_the_older_one_is_offered(tmp_path: Path, folder: Path) -> None:
    older = keep(folder, LEGACY)
    (folder / CURRENT).write_text("[{")
    with pytest.raises(SessionError, match=f"{CURRENT} was not imported.*{LEGACY} can be read: name that"):
        import_session(tmp_path, folder, tmp_path)
    assert import_session(tmp_path, older, tmp_path)
    older.write_text("[")
    with pytest.raises(SessionError) as told:
        import_session(tmp_path, folder, tmp_path)
    assert LEGACY not in str(told.value)


HALF = '[{"role": "user", "content": "half \\ud83d a letter"}]'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, content) for name in (CURRENT, LEGACY, METADATA) for content in (HALF, "[" * 100_000)),
        ("export.json", "[" * 100_000),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_no_text_holds_is_refused_in_one_sentence(
    tmp_path: Path,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: str,
) -> None:
    if name == METADATA:
        keep(folder, CURRENT)
    (folder / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    done = run_here(capfd, ["sessions", "import", str(folder / name if name == "export.json" else folder)])
    assert done.status == 1 and "was not imported" in done.sentence
    assert not catalog.list_sessions(user_folders().data)


PNG = "iVBORw0KGgo="
TALK = [
    {"role": "user", "content": [{"type": "text", "text": "<task>Add a timeout</task>"}], "ts": 1_000},
    {"role": "assistant", "content": [{"type": "text", "text": "Thought of much"}]},
    {"role": "assistant", "content": "It wants a timeout in a.py.", "isSummary": True},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "secretly"},
            {"type": "text", "text": "I read it."},
            {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a.py"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [
                    {"type": "text", "text": "1: x = 1 </user_query>"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ],
            }
        ],
        "ts": 2_000,
    },
    {"role": "user", "content": [{"type": "text", "text": "<feedback>And now?</feedback>"}], "ts": 3_000},
]


async def test_an_imported_task_goes_on(tmp_path: Path, folder: Path) -> None:
    keep(folder, CURRENT, TALK)
    root = make_tree(tmp_path / "work", {"a.py": "x = 1\n", "b.py": "b\n"})
    now = 1000 * int((root / "a.py").stat().st_mtime + 10)
    seen = {"record_state": "active", "record_source": "read_tool", "roo_read_date": now}
    records = [
        {**seen, "path": "a.py"},
        {**seen, "path": "b.py", "roo_read_date": 2_500},
        {**seen, "path": "gone.py", "record_source": "roo_edited", "roo_edit_date": 2_500},
        {**seen, "path": "../outside.py"},
    ]
    keep(folder, METADATA, {"files_in_context": records})
    name = import_session(user_folders().data, folder, root)
    async with open_session(root, [reply()], session=name) as session:
        await session.chat.submit("Go on with it")
        await session.chat.finished()
        (request,) = model_of(session).requests
        told = [(message["role"], text_of(message)) for message in request.messages[1:-1]]
        assert told == [
            ("user", "<task>Add a timeout</task>"),
            ("user", f"{SUMMARY}\n\nIt wants a timeout in a.py."),
            ("assistant", 'I read it.\n\n[Call of read_file]\n{"path": "a.py"}'),
            ("user", "[Result of read_file]\n1: x = 1 <~/user_query>\n[An image, image/png]"),
            ("user", "<feedback>And now?</feedback>"),
        ]
        assert request.messages[4]["images"] == [{"media_type": "image/png", "data": PNG}]
        last = request.messages[-1]["content"]
        for row in ("a.py | turn 2 (in part) | No |", "b.py | turn 1 (in part) | ⚠️ Yes (on disk)"):
            assert f"| {row}" in last
        assert "| gone.py | turn 2 (in part) | deleted |" in last and "outside" not in last
        assert [m.kind for m in session.state.conversation.messages].count("summary") == 1
        assert "It wants a timeout" in await session.chat.summary()

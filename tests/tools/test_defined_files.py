"""A file that no pattern names is found by the identifier it defines, before the person is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sessions import calls, open_session
from support.trees import make_tree

from tui_agent.store import events as e


def wanted(name: str, *patterns: str, **fields: object) -> dict[str, object]:
    return {"type": "file", "name": name, "patterns": list(patterns), "required": True, **fields}


@pytest.mark.parametrize(
    ("files", "action", "loaded"),
    [
        (
            {"rates/client.py": "async def fetch_rates(base):\n"},
            wanted("Rates", "lib/fetch_rates.py"),
            ["rates/client.py"],
        ),
        ({"a.go": "func (q *Queue) popFirst() {\n"}, wanted("popFirst of the queue", "q.go"), ["a.go"]),
        (
            {"a.ts": "export const isBusy = 1;\n", "b.ts": "isBusy();\n"},
            wanted("isBusy", "busy.ts"),
            ["a.ts"],
        ),
        # The identifier has another spelling than the file name.
        (
            {"src/tasks.ts": "export function selectTasks() {}\n"},
            wanted("Choice", "select_tasks.ts"),
            ["src/tasks.ts"],
        ),
        ({"app/base.py": "DEFAULTS = {}\n"}, wanted("Settings", "app/defaults.py"), ["app/base.py"]),
        (
            {"a.ts": "export type Filter = string;\n", "b.ts": "let x: Filter;\n"},
            wanted("x", "filter.ts"),
            ["a.ts"],
        ),
        # The folder of the pattern decides between two definitions.
        (
            {"apps/billing/base.py": "RETRIES = 3\n", "apps/auth/base.py": "RETRIES = 3\n"},
            wanted("x", "billing/retries.py"),
            ["apps/billing/base.py"],
        ),
        ({"a/base.py": "RETRIES = 3\n", "b/base.py": "RETRIES = 3\n"}, wanted("x", "c/retries.py"), []),
        # A lower-case word is too ordinary, and a comparison defines nothing.
        ({"a.py": "def filter():\n"}, wanted("x", "filter.py"), []),
        ({"a.py": "if x:\n    pass\nRETRIES == 3\n"}, wanted("x", "retries.py"), []),
        # Two files define it, no file defines it, or the words are ordinary: the person knows.
        ({"a.py": "def to_csv():\n", "b.py": "def to_csv():\n"}, wanted("x", "to_csv.py"), []),
        ({"a.py": "to_csv()\n"}, wanted("x", "to_csv.py"), []),
        ({"a.py": "class Rates:\n"}, wanted("Rates", "exchange.py"), []),
        ({"a.py": "def to_csv():\n"}, wanted("x", "to_csv.py", fallbackAction="create_new"), []),
    ],
)
async def test_the_only_definition_is_loaded(
    tmp_path: Path, files: dict[str, str], action: dict[str, object], loaded: list[str]
) -> None:
    make_tree(tmp_path, files)
    events: list[e.Event] = []
    replies = [calls(("read_files", {"actions": [action]})), "Done."]
    async with open_session(tmp_path, replies, protocol="tools") as session:
        session.subscribe(lambda event, _: events.append(event))
        await session.chat.submit("Look")
        await session.chat.finished()
    assert [one.file.path for one in events if isinstance(one, e.FileLoaded)] == loaded
    fallbacks = [one.kind for one in events if isinstance(one, e.FallbackTaken)]
    assert fallbacks == ([] if loaded else [action.get("fallbackAction", "ask_user")])
    hits = [
        one.attempt.by for one in events if isinstance(one, e.AttemptEnded) and one.attempt.outcome == "hit"
    ]
    assert hits == (["program"] if loaded else [])


@pytest.mark.parametrize(
    ("action", "notice"),
    [
        (wanted("Rates", "RATES.PY"), "RATES.PY was found with different letter case: rates.py"),
        (wanted("Rates", "rates.py"), ""),
        (
            wanted("X", "no.py", fallbackAction="ask_user"),
            "X was not found (tried no.py). The turn continues without it",
        ),
        (wanted("X", "no.py", fallbackAction="create_new"), ""),
        (wanted("X", "no.py", fallbackAction="skip"), ""),
    ],
)
async def test_a_file_under_another_name_or_none_is_told(
    tmp_path: Path, action: dict[str, object], notice: str
) -> None:
    make_tree(tmp_path, {"rates.py": "x = 1\n"})
    replies = [calls(("read_files", {"actions": [action]})), "Done."]
    async with open_session(tmp_path, replies, protocol="tools") as session:
        await session.chat.submit("Look")
        await session.chat.finished()
        told = [one.text for one in session.state.notices.items]
    assert told == ([notice] if notice else [])

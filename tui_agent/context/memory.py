"""Memory: the state of the work, told from state when the person asks to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tui_agent.context.blocks import inert, item, name

#: The whole message is one of these, in any case, with or without a full stop.
GO_ON = ("continue", "go on", "proceed", "next", "keep going", "go ahead", "resume")
#: Or it begins with one of these.
GO_ON_WITH = ("continue ", "go ahead ")
#: How many turns back a file still counts as being worked on.
ACTIVE_TURNS = 3


class TodoNote(Struct, frozen=True):
    text: str
    details: str = ""
    done: bool = False


class Memory(Struct, frozen=True):
    """What is remembered. `modified` maps a turn to the files that it modified, `stale` a path to what became of it.

    `turn` is the one that begins; `request` is the last one that was more than a word to go on.
    """

    turn: int
    request: str
    summary: str = ""
    todos: tuple[TodoNote, ...] = ()
    pending: tuple[str, ...] = ()
    stale: Mapping[str, str] = {}
    modified: Mapping[int, tuple[str, ...]] = {}
    active: tuple[str, ...] = ()


def asks_to_go_on(message: str, turn: int) -> bool:
    """Whether a message brings the memory along; the first turn has nothing to remember."""
    if turn <= 1:
        return False
    words = message.strip().lower()
    return words.removesuffix(".") in GO_ON or words.startswith(GO_ON_WITH)


TITLE = "## AI Memory (Continuation Context)"


def section(memory: Memory) -> str:
    """The `## AI Memory (Continuation Context)` section; parts with nothing to say are left out."""
    parts = [
        f"Turn: {memory.turn}",
        f"Last request, word for word:\n{inert(memory.request)}" if memory.request else "",
        f"Last summary: {inert(memory.summary)}" if memory.summary else "",
        _list("Done todos", [_todo(todo) for todo in memory.todos if todo.done]),
        _list("Open todos", [_todo(todo) for todo in memory.todos if not todo.done]),
        _list("Proposed and not yet decided by the person", memory.pending),
        _list("Files that need a refresh", [f"{path}: {what}" for path, what in memory.stale.items()]),
        _list(
            "Files modified by turn",
            [f"turn {turn}: {', '.join(paths)}" for turn, paths in sorted(memory.modified.items())],
        ),
        _list(f"Active working files (last {ACTIVE_TURNS} turns)", memory.active),
        f"How to resume: {_resume(memory)}",
    ]
    return f"{TITLE}\n" + "\n\n".join(part for part in parts if part)


def untitled(text: str) -> str:
    """What a person reads and edits of a section."""
    return text.removeprefix(TITLE).strip()


def titled(text: str) -> str:
    """A section with these words, as it is sent."""
    return f"{TITLE}\n{text.strip()}"


def _todo(todo: TodoNote) -> str:
    return f"{todo.text}: {todo.details}" if todo.details else todo.text


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    return f"{title}:\n" + "\n".join(f"- {item(entry)}" for entry in items)


def _resume(memory: Memory) -> str:
    first = next((todo.text for todo in memory.todos if not todo.done), "")
    if first:
        return f"go on with the first open todo, “{name(first)}”. Do not start again, do not repeat what is done."
    if memory.pending:
        return "the proposed changes wait for the person. Do not propose them again; say what is left, if anything."
    return "go on with the last request where the last summary ends. Do not repeat what is done."

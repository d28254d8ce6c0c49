"""A summary of the work's state, sent when the user asks to continue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tui_agent.context.blocks import inert, item, name

#: Whole messages that mean "continue", in any case, with or without a full stop.
GO_ON = ("continue", "go on", "proceed", "next", "keep going", "go ahead", "resume")
GO_ON_WITH = ("continue ", "go ahead ")
ACTIVE_TURNS = 3
#: Characters of the section and of a list entry.
MOST, MOST_OF_AN_ENTRY = 48_000, 1_000


class TodoNote(Struct, frozen=True):
    text: str
    details: str = ""
    done: bool = False


class Memory(Struct, frozen=True):
    """`modified` maps turns to files, `stale` maps paths to the changes. `request` is the last prompt that
    was not just "continue".
    """

    turn: int
    request: str
    summary: str = ""
    todos: tuple[TodoNote, ...] = ()
    pending: tuple[str, ...] = ()
    stale: Mapping[str, str] = {}
    modified: Mapping[int, tuple[str, ...]] = {}
    active: tuple[str, ...] = ()
    batches: tuple[str, ...] = ()


def asks_to_go_on(message: str, turn: int) -> bool:
    """Never in the first turn."""
    if turn <= 1:
        return False
    words = message.strip().lower()
    return words.removesuffix(".") in GO_ON or words.startswith(GO_ON_WITH)


TITLE = "## AI Memory (Continuation Context)"


def section(memory: Memory, most: int = MOST) -> str:
    """About `most` characters; truncated parts state how much is missing."""
    eighth = most // 8
    request = shortened(memory.request, 2 * eighth)
    modified = [f"turn {turn}: {', '.join(paths)}" for turn, paths in sorted(memory.modified.items())]
    parts = [
        f"Turn: {memory.turn}",
        f"Last request, word for word:\n{inert(request)}" if request else "",
        f"Last summary: {inert(shortened(memory.summary, eighth))}" if memory.summary else "",
        _list("Done todos", [_todo(todo) for todo in memory.todos if todo.done], eighth // 2, newest=True),
        _list("Open todos", [_todo(todo) for todo in memory.todos if not todo.done], 2 * eighth),
        _list("Batches that are carried on", memory.batches, eighth // 2),
        _list("Proposed and not yet decided by the person", memory.pending, eighth // 2),
        _list(
            "Files that need a refresh",
            [f"{path}: {what}" for path, what in memory.stale.items()],
            eighth // 2,
        ),
        _list("Files modified by turn", modified, eighth // 2, newest=True),
        _list(f"Active working files (last {ACTIVE_TURNS} turns)", memory.active, eighth // 2),
        f"How to resume: {_resume(memory)}",
    ]
    return f"{TITLE}\n" + "\n\n".join(part for part in parts if part)


def untitled(text: str) -> str:
    return text.removeprefix(TITLE).strip()


def titled(text: str) -> str:
    return f"{TITLE}\n{text.strip()}"


def _todo(todo: TodoNote) -> str:
    return f"{todo.text}: {todo.details}" if todo.details else todo.text


def shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = max(1, most // 2)
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def _list(title: str, items: Sequence[str], most: int, *, newest: bool = False) -> str:
    if not items:
        return ""
    lines: list[str] = []
    room = most
    for entry in reversed(items) if newest else items:
        line = f"- {item(shortened(entry, MOST_OF_AN_ENTRY))}"
        room -= len(line) + 1
        if room < 0 and lines:
            break
        lines.append(line)
    if newest:
        lines.reverse()
    if missing := len(items) - len(lines):
        lines.append(f"- [… {missing} {'earlier' if newest else 'more'} left out …]")
    return f"{title}:\n" + "\n".join(lines)


def _resume(memory: Memory) -> str:
    if memory.batches:
        return "go on with the batch: do what it is about with the files that are shown, and leave the others alone."
    first = next((todo.text for todo in memory.todos if not todo.done), "")
    if first:
        first = name(shortened(first, 200))
        return f"go on with the first open todo, “{first}”. Do not start again, do not repeat what is done."
    if memory.pending:
        return "the proposed changes wait for the person. Do not propose them again; say what is left, if anything."
    return "go on with the last request where the last summary ends. Do not repeat what is done."

"""The hand-over: instructions in a sub-task's system prompt beside its goal. It never changes during a
run."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tui_agent.context.blocks import inert, item, name
from tui_agent.store.graph import SubTask

_BEGINNING = """# Your part of a larger work
Several work on parts of one request at the same time, each in a copy of the folder of its own. Yours is “{id}”.
Do this part and no other. What you propose is written into your copy at once, and the person reviews all parts \
together at the end: ask nobody, and do not wait for a decision. Where nothing is left to do, answer without changes; \
what you say beside your changes is what the others and the person are told of them."""
_SCOPE = "Files of this part: {files}. Another file may be changed where this part needs it; the person is shown that."


class HandOver(Struct, frozen=True):
    """The parent's context for a sub-task.

    `before` are its completed dependencies, `missing` the folders absent from its copy.
    """

    task: SubTask
    request: str = ""
    summary: str = ""
    before: tuple[SubTask, ...] = ()
    missing: tuple[str, ...] = ()
    splits: bool = False


def text(given: HandOver) -> str:
    """The hand-over as text, without empty parts."""
    task = given.task
    parts = [
        _BEGINNING.format(id=name(task.id)),
        f"The whole request, word for word:\n{inert(given.request)}" if given.request else "",
        f"What was said of it: {inert(given.summary)}" if given.summary else "",
        _SCOPE.format(files=", ".join(map(name, task.files))) if task.files else "",
        _list("These parts are done, and your copy holds what they changed", map(_done, given.before)),
        _list("These are not in your copy, leave them alone", given.missing),
        inert(task.note),
        "" if given.splits else "Do not split this part into sub-tasks.",
    ]
    return "\n\n".join(part for part in parts if part)


def _done(task: SubTask) -> str:
    changed = f" Changed: {', '.join(step.path for step in task.changed)}." if task.changed else ""
    return f"{task.id}: {task.summary or task.goal}{changed}"


def _list(title: str, items: Sequence[str] | map[str]) -> str:
    lines = [f"- {item(entry)}" for entry in items]
    return "\n".join([f"{title}:", *lines]) if lines else ""

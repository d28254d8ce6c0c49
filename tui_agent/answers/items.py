"""The parts of a reply, built item by item, so that one bad item does not hide the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tui_agent.answers import patches, plans, same_file, schema
from tui_agent.answers.escapes import has_half, joined
from tui_agent.answers.mend import mended
from tui_agent.answers.values import (
    ChangeRequest,
    NextStep,
    Reply,
    SearchReplace,
    SearchRequest,
    SubTaskRequest,
    TodoItem,
)

Item = dict[str, Any]
Built = TypeVar("Built")

#: The keys that make a JSON object a reply.
KEYS = (
    "summary",
    "message",
    "todos",
    "fileChanges",
    "fileRequests",
    "directoryRequests",
    "subTasks",
    "nextSteps",
)


class _Bad(Exception):
    """An item that cannot be used; the sentence says why."""


class Items:
    """Collects the parts of one reply, and a sentence about each that cannot be used.

    `response` is the schema of a reply; with none, only what building the values itself needs is checked.
    """

    def __init__(self, response: schema.Schema | None = None) -> None:
        self._parts: dict[str, Any] = (response or {}).get("properties", {})
        self._search: dict[str, Any] = (response or {}).get("$defs", {}).get("searchText", {})
        self.faults: list[str] = []
        self.todos: tuple[TodoItem, ...] | None = None
        self.changes: list[ChangeRequest] = []
        self.plan = plans.Plan(source="model")
        self.searches: list[SearchRequest] = []
        self.sub_tasks: list[SubTaskRequest] = []
        self.next_steps: list[NextStep] = []

    def take(self, key: str, value: Any, label: str = "") -> None:
        """Read what stands under `key` of a reply; `label` names it in faults where it is called otherwise."""
        part = self._parts.get(key, {"type": "array", "items": {"type": "object"}})
        value = mended(part, value)
        label = label or key
        if value is None:
            return
        if not isinstance(value, list):
            self.faults.append(f"{label}: a list is wanted here.")
            return
        entries = self._good(value, part.get("items", {}), label)
        match key:
            case "todos":
                self.todos = (*(self.todos or ()), *self._built(entries, _todo))
            case "fileChanges":
                for requests in self._built(entries, _changes):
                    self.changes.extend(requests)
            case "fileRequests" | "directoryRequests":
                kind = "file" if key == "fileRequests" else "directory"
                self._add_plan([(at, {**entry, "type": kind}) for at, entry in entries])
            case "subTasks":
                self.sub_tasks.extend(self._built(entries, _sub_task))
            case "nextSteps":
                self.next_steps.extend(self._built(entries, _next_step))

    def take_search(self, value: Any, label: str = "search_text") -> None:
        self.searches.extend(
            self._built(self._good([mended(self._search, value)], self._search, label), _search)
        )

    def reply(self, summary: str, message: str, cut: bool) -> Reply:
        return Reply(
            summary=joined(summary),
            message=joined(message),
            todos=self.todos,
            changes=tuple(same_file.joined(self.changes)),
            files=self.plan.files,
            directories=self.plan.directories,
            searches=tuple(self.searches),
            sub_tasks=tuple(self.sub_tasks),
            next_steps=tuple(self.next_steps),
            cut=cut,
            faults=tuple(self.faults),
        )

    def _good(self, values: list[Any], part: dict[str, Any], label: str) -> Iterator[tuple[str, Item]]:
        for number, value in enumerate(values):
            at = f"{label}[{number}]"
            found = schema.check(part, value, at) if part else []
            if not isinstance(value, dict):
                found = found or [f"{at}: an object is wanted here."]
            if found:
                self.faults.extend(found)
            else:
                yield at, value

    def _built(self, entries: Iterator[tuple[str, Item]], build: Callable[[Item], Built]) -> Iterator[Built]:
        for at, entry in entries:
            try:
                yield build(entry)
            except _Bad as error:
                self.faults.append(f"{at}: {error}.")

    def _add_plan(self, entries: list[tuple[str, Item]]) -> None:
        for at, entry in entries:
            plan = plans.from_items([entry])
            self.plan = plans.joined_plans(self.plan, plan)
            self.faults.extend(f"{at}: {fault}" for fault in plan.faults)


def _text(item: Item, key: str) -> str:
    value = item.get(key, "")
    if not isinstance(value, str):
        raise _Bad(f"{key} is no text")
    return value


def _texts(item: Item, key: str) -> tuple[str, ...]:
    value = item.get(key, ())
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()


def _todo(item: Item) -> TodoItem:
    text = _text(item, "text").strip()
    if not text:
        raise _Bad("a todo needs `text`")
    return TodoItem(joined(text), joined(_text(item, "aiText")), item.get("done") is True)


def _sub_task(item: Item) -> SubTaskRequest:
    task = SubTaskRequest(
        id=_text(item, "id").strip(),
        goal=joined(_text(item, "goal")),
        files=_texts(item, "files"),
        dependencies=_texts(item, "dependencies"),
        auto_execute=item.get("autoExecute") is True,
    )
    if not task.id or not task.goal:
        raise _Bad("a sub-task needs `id` and `goal`")
    return task


def _next_step(item: Item) -> NextStep:
    label = joined(_text(item, "html").strip())
    if not label:
        raise _Bad("a next step needs `html`")
    return NextStep(label, joined(_text(item, "inputText")) or label)


def _search(item: Item) -> SearchRequest:
    if not _text(item, "pattern"):
        raise _Bad("a search needs `pattern`")
    return SearchRequest(_text(item, "pattern"), _text(item, "glob"), item.get("regex") is True)


def _changes(item: Item) -> list[ChangeRequest]:
    """One entry as changes: several where its diff is about several files."""
    change = _change(item)
    if any(has_half(text) for text in _written(change)):
        raise _Bad("the text holds half of a surrogate pair, which no file can hold; send it again")
    found = patches.requests(change.diff, change) if change.diff is not None else [change]
    if not all(request.path for request in found):
        raise _Bad("a change needs `path`")
    return found


def _change(item: Item) -> ChangeRequest:
    edits = _edits(item)
    delete = item.get("delete") is True
    content = _text(item, "content") if "content" in item else None
    diff = _text(item, "diff") or None
    rename = _text(item, "renameTo").strip() or None
    if content == "" and (edits or diff or delete or rename):
        content = None  # some models fill in every property
    forms = [form for form in (content is not None, bool(edits), bool(diff), delete) if form]
    if len(forms) > 1:
        raise _Bad(
            "more than one of `content`, `edits`, `diff` and `delete` is set; send the one that is meant"
        )
    if not forms and not rename:
        raise _Bad("none of `content`, `edits`, `diff`, `delete` and `renameTo` is set")
    index = item.get("todoIndex")
    return ChangeRequest(
        path=_text(item, "path").strip().removeprefix("./"),
        content=content,
        edits=edits,
        diff=diff,
        delete=delete,
        rename_to=rename and rename.removeprefix("./"),
        todo_index=index if isinstance(index, int) and not isinstance(index, bool) else None,
        base_hash=_text(item, "baseHash").strip(),
    )


def _edits(item: Item) -> tuple[SearchReplace, ...]:
    value = item.get("edits", [])
    if not isinstance(value, list) or not all(isinstance(edit, dict) for edit in value):
        raise _Bad("`edits` is no list of objects")
    if any("search" not in edit or "replace" not in edit for edit in value):
        raise _Bad("each edit needs `search` and `replace`")
    return tuple(SearchReplace(_text(edit, "search"), _text(edit, "replace")) for edit in value)


def _written(change: ChangeRequest) -> Iterator[str]:
    yield from (change.path, change.content or "", change.diff or "", change.rename_to or "")
    for edit in change.edits:
        yield from (edit.search, edit.replace)

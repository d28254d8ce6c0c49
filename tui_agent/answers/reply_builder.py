"""Builds a reply item by item, so that an invalid item does not affect others. Joins changes of one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tui_agent.answers import file_names, markers, plans, prose, schema
from tui_agent.answers.lenient_json import has_half, joined
from tui_agent.answers.schema import by_path, coerced, near_names, written_out
from tui_agent.answers.text_calls import CallsInText
from tui_agent.answers.values import (
    BadItem,
    ChangeRequest,
    Item,
    JoinedPieces,
    Ledger,
    NextStep,
    Refusal,
    Reply,
    SearchRequest,
    ShownText,
    SubTaskRequest,
    TodoItem,
    text_at,
)

Built = TypeVar("Built")

#: A JSON object with one of these is a reply.
KEYS = (
    "summary", "message", "todos", "fileChanges", "fileRequests", "directoryRequests", "searches", "subTasks",
    "nextSteps",
)  # fmt: skip
MOST_ENTRIES = 10_000
_CHANGES = ("fileChanges", "propose_changes.changes")


#: Partly understood entries of these are refused.
_WITH_EFFECTS = frozenset({"fileChanges", "propose_changes", "commands", "run_command"})


def _unknown(entry: Item, part: dict[str, Any]) -> list[str]:
    shapes = part.get("properties", {})
    found = list(schema.unknown_properties(entry, shapes)) if shapes else []
    for key, shape in shapes.items():
        inner = shape.get("items", {}).get("properties", {})
        several = entry.get(key)
        if inner and isinstance(several, list):
            path = {"path": entry.get("path", "")}
            for one in several:
                if isinstance(one, dict) and not one.keys() <= inner.keys():
                    found += [f"{key}[].{name}" for name in schema.unknown_properties(one, inner, **path)]
    return list(dict.fromkeys(found))


def _list_with_verb(keys: list[str]) -> str:
    shown = ", ".join(f"`{key[:60]}`" for key in keys[:5])
    return f"{shown} {'is' if len(keys) == 1 else 'are'}"


class ReplyBuilder:
    """Without the schema `response`, checks only required values."""

    def __init__(self, response: schema.Schema | None = None) -> None:
        self._parts: dict[str, Any] = (response or {}).get("properties", {})
        self.faults: list[str] = []
        self.todos: tuple[TodoItem, ...] | None = None
        self.changes: list[ChangeRequest] = []
        self.refused: list[Refusal] = []
        #: Only the user may apply these examples, and fences without a file name.
        self.offered: list[ChangeRequest] = []
        self.shown: list[ShownText] = []
        self._said: set[str] = set()
        self.plan = plans.Plan(source="model")
        self.searches: list[SearchRequest] = []
        self.sub_tasks: list[SubTaskRequest] = []
        self.next_steps: list[NextStep] = []
        self.others: dict[str, list[Item]] = {}

    @property
    def count(self) -> int:
        lists = (
            self.changes,
            self.plan.files,
            self.plan.directories,
            self.searches,
            self.sub_tasks,
            self.next_steps,
            *self.others.values(),
        )
        return sum(map(len, lists)) + (0 if self.todos is None else 1 + len(self.todos))

    def take(self, key: str, value: Any, label: str = "", but: Sequence[str] = ()) -> None:
        """`label` is the key's name in faults. Keys in `but` would change the meaning of the entries, so all
        are refused.
        """
        part = self._parts.get(key, {"type": "array", "items": {"type": "object"}})
        label = label or key
        if key == "fileChanges":
            value = by_path(written_out(value))
        if isinstance(value, list):
            value = self._bounded(value, label)
        if isinstance(value, list) and key == "fileChanges":
            value = [near_names(entry) if isinstance(entry, dict) else entry for entry in value]
        value = coerced(part, value)
        if value is None:
            return
        if not isinstance(value, list):
            self.faults.append(f"{label}: a list is expected here.")
            return
        if but:
            sentence = f"{label}: {_list_with_verb(list(but))} not known here, and nothing of it is done."
            self.faults.append(sentence)
            for entry in value:
                self._refuse_entry(entry, label, sentence.partition(": ")[2])
            return
        entries = self._good(value, part.get("items", {}), label)
        match key:
            case "todos":
                self.todos = (*(self.todos or ()), *self._built(entries, TodoItem.read))
            case "fileChanges":
                for requests in self._built(entries, _changes):
                    for item in requests:
                        if isinstance(item, ChangeRequest):
                            self.changes.append(item)
                        elif isinstance(item, Refusal):
                            self.refuse(item)
                        else:
                            self.faults.append(item)
            case "fileRequests" | "directoryRequests":
                kind = "file" if key == "fileRequests" else "directory"
                for at, entry in entries:
                    plan = plans.from_items([{**entry, "type": kind}])
                    self.plan = plans.joined_plans(self.plan, plan)
                    self.faults.extend(f"{at}: {fault}" for fault in plan.faults)
            case "searches":
                self.searches.extend(self._built(entries, SearchRequest.read))
            case "subTasks":
                self.sub_tasks.extend(self._built(entries, SubTaskRequest.read))
            case "nextSteps":
                self.next_steps.extend(self._built(entries, NextStep.read))
            case _:
                self.others.setdefault(key, []).extend(entry for _, entry in entries)

    def take_one(self, key: str, value: Any, label: str) -> None:
        part = self._parts.get(key, {}).get("items", {})
        entries = self._good([coerced(part, value)], part, label)
        if key == "searches":
            self.searches.extend(self._built(entries, SearchRequest.read))
        else:
            self.others.setdefault(key, []).extend(entry for _, entry in entries)

    def add(self, other: ReplyBuilder) -> None:
        if other.todos is not None:
            self.todos = (*(self.todos or ()), *other.todos)
        self.changes += other.changes
        self.refused += other.refused
        self.offered += other.offered
        self._said |= other._said
        self.plan = plans.joined_plans(self.plan, other.plan)
        self.searches += other.searches
        self.sub_tasks += other.sub_tasks
        self.next_steps += other.next_steps
        for key, entries in other.others.items():
            self.others.setdefault(key, []).extend(entries)

    def read_reply(self, value: dict[str, Any]) -> tuple[str, str]:
        but = list(schema.commanding_properties(value, KEYS))
        for key in KEYS[2:]:
            if key in value:
                self.take(key, value[key], but=but if key == "fileChanges" else ())
        summary, message = (value.get(key) for key in KEYS[:2])
        return summary if isinstance(summary, str) else "", message if isinstance(message, str) else ""

    def offer(self, other: ReplyBuilder, why: str) -> None:
        self.offered += [msgspec.structs.replace(change, offered=why) for change in other.changes]
        if other.count > len(other.changes) or (other.refused and not other.changes):
            self.faults.append(f"{why[:1].upper()}{why[1:]}: it was not carried out.")

    def refuse(self, refusal: Refusal) -> None:
        self.refused.append(refusal)
        self._said.add(file_names.plain(refusal.path))
        self.faults.append(refusal.sentence)

    def read_prose(self, left: JoinedPieces, more: str, cut: bool) -> None:
        """Reads changes in the remaining text and in `more`. If the reply has changes of its own, these are
        only offered.
        """
        found = prose.changes(f"{left.text}\n\n{more}" if more.strip() else left.text, cut)
        for begin, end, use in found.spans:
            left.claim(begin, end, use)
        self.shown.extend(found.shown)
        if not self.changes and not self.refused:
            self.changes.extend(found.changes)
            self.refused.extend(found.refused)
            self.offered.extend(found.offered)
            self._said.update(file_names.plain(one.path) for one in found.refused)
            self.faults.extend(found.faults)
            return
        told = {file_names.plain(item.path) for item in (*self.changes, *self.refused)}
        told |= {file_names.plain(change.rename_to) for change in self.changes if change.rename_to}
        said: dict[str, bool] = {}
        for item in (*found.changes, *found.refused):
            path = file_names.plain(item.path)
            if path in told and not (isinstance(item, ChangeRequest) and self._has(item)):
                said[path] = True
            elif path and path not in told:
                said.setdefault(path, False)
        for path, beside in said.items():
            change = "another change" if beside else "a change"
            self.faults.append(
                f"The text shows {change} to {path} that is not among the proposed changes. It was ignored."
            )

    def _has(self, shown: ChangeRequest) -> bool:
        same = [change for change in self.changes if file_names.same_file(change.path, shown.path)]
        if not same:
            return True
        proposed = {line.strip() for change in same for text in change.texts for line in text.split("\n")}
        return all(line.strip() in proposed for line in shown.added if line.strip())

    def add_changes_in_prose(
        self, found: CallsInText, ledger: Ledger, cut: bool, unfinished_thought: bool
    ) -> None:
        if found.fault:
            self.refuse(Refusal("", found.fault))
        if unfinished_thought:
            self.faults.append("The answer ended inside its reasoning, in which changes are ignored.")
        self.read_prose(ledger.left(), "", cut)
        nothing = not (self.count or self.changes or self.refused or self.offered or self.faults)
        if found.doubt and not cut and nothing:
            self.refuse(Refusal("", found.doubt))

    def reply(self, summary: str, message: str, cut: bool) -> Reply:
        changes, refused = joined_changes(self.changes, self.refused)
        told = dict.fromkeys(one.sentence for one in refused if file_names.plain(one.path) not in self._said)
        self.faults.extend(told)
        taken = {file_names.plain(one.path) for one in (*changes, *refused)}
        for path in dict.fromkeys(
            one.path for one in self.offered if file_names.plain(one.path) in taken and not self._has(one)
        ):
            self.faults.append(
                f"The text shows another change to {path} beside the proposed one: it was not taken."
            )
        offered, _ = joined_changes(one for one in self.offered if file_names.plain(one.path) not in taken)
        return Reply(
            summary=joined(summary),
            message=joined(message),
            todos=self.todos,
            changes=tuple(changes),
            files=self.plan.files,
            directories=self.plan.directories,
            searches=tuple(self.searches),
            sub_tasks=tuple(self.sub_tasks),
            next_steps=tuple(self.next_steps),
            cut=cut,
            faults=tuple(self.faults),
            refused=tuple(refused),
            offered=tuple(offered),
            shown=tuple(self.shown),
            others={key: tuple(entries) for key, entries in self.others.items()},
        )

    def _bounded(self, entries: list[Any], label: str) -> list[Any]:
        if len(entries) > MOST_ENTRIES:
            self.faults.append(
                f"{label}: of {len(entries):,} entries only the first {MOST_ENTRIES:,} are read."
            )
            entries = entries[:MOST_ENTRIES]
        kept = []
        for number, entry in enumerate(entries):
            edits = entry.get("edits") if isinstance(entry, dict) else None
            if isinstance(edits, list) and len(edits) > 2 * MOST_ENTRIES:
                why = f"it has {len(edits):,} edits; send at most {MOST_ENTRIES:,}, or the whole file"
                self.faults.append(f"{label}[{number}]: {why}.")
                self._refuse_entry(entry, label, why)
            else:
                kept.append(entry)
        return kept

    def _good(self, values: list[Any], part: dict[str, Any], label: str) -> Iterator[tuple[str, Item]]:
        for number, value in enumerate(values):
            at = f"{label}[{number}]"
            found = schema.check(part, plans.normalized_action(value), at) if part else []
            if not isinstance(value, dict):
                found = found or [f"{at}: an object is expected here."]
            elif unknown := _unknown(value, part):
                sentence = (
                    f"{at}: {_list_with_verb(unknown)} not known here, and nothing of this entry is done."
                )
                if label.partition(".")[0] in _WITH_EFFECTS:
                    found = found or [sentence]
                else:
                    self.faults.append(f"{at}: {_list_with_verb(unknown)} not known here.")
            if found:
                self.faults.extend(found)
                self._refuse_entry(value, label, found[0].partition(": ")[2] or found[0])
            else:
                yield at, value

    def _built(self, entries: Iterator[tuple[str, Item]], build: Callable[[Item], Built]) -> Iterator[Built]:
        for at, entry in entries:
            try:
                yield build(entry)
            except BadItem as error:
                self.faults.append(f"{at}: {error}.")
                self._refuse_entry(entry, at.partition("[")[0], str(error))

    def _refuse_entry(self, entry: Any, label: str, why: str) -> None:
        path = entry.get("path") if isinstance(entry, dict) else None
        if label in _CHANGES and isinstance(path, str) and path.strip():
            self.refused.append(Refusal(path.strip(), why.rstrip(".")))
            self._said.add(file_names.plain(path.strip()))


def _changes(item: Item) -> list[markers.Item]:
    change = ChangeRequest.read(item)
    diff = text_at(item, "diff")
    if has_half("\n".join((change.path, diff, *change.texts))):
        raise BadItem("the text holds half of a surrogate pair, which no file can hold; send it again")
    if change.content is not None and (form := markers.edit_form(change.path, change.content)):
        raise BadItem(f"`content` begins like an edit (`{form[:60]}`), and takes only the text of the file")
    found = markers.requests(diff, change) if diff else [change]
    if not all(request.path for request in found if isinstance(request, ChangeRequest)):
        raise BadItem("a change needs `path`")
    return found


#: Each is applied to the original file and merged.
MOST_STEPS = 100


def joined_changes(
    changes: Iterable[ChangeRequest], refused: Iterable[Refusal] = ()
) -> tuple[list[ChangeRequest], list[Refusal]]:
    """Returns one change or refusal per file, at the position of its first."""
    files: dict[str, list[ChangeRequest]] = {}
    #: Key in `files` by new name.
    moved: dict[str, str] = {}
    clashes: dict[str, str] = {}
    for change in changes:
        path = file_names.plain(change.path)
        path = moved.get(path, path)
        files.setdefault(path, []).append(change)
        target = file_names.plain(change.rename_to or "")
        if not target or target == path:
            continue
        if target in files or moved.get(target, path) != path:
            other = moved.get(target, target)
            clashes[path] = f"it is to become {target}, of which the same reply makes something else"
            clashes[other] = f"{path} is to take the place of {target} in the same reply"
        moved.setdefault(target, path)
    made = [
        (file_names.plain(next((one.rename_to for one in several if one.rename_to), several[0].path)), path)
        for path, several in files.items()
        if not all(one.delete for one in several)
    ]
    names_made = {name for name, _ in made}
    for name, path in made:
        parts = name.split("/")
        folders = ("/".join(parts[:length]) for length in range(len(parts) - 1, 0, -1))
        above = next((folder for folder in folders if folder in names_made), "")
        if above:
            clashes[path] = f"the same reply creates {above} as a file, so it cannot be a folder"
            clashes[moved.get(above, above)] = f"the same reply creates {name}, so it cannot be a file"
    told: dict[str, Refusal] = {}
    for refusal in refused:
        path = file_names.plain(refusal.path)
        told.setdefault(moved.get(path, path), refusal)
    found: list[ChangeRequest] = []
    without: list[Refusal] = []
    for path, several in files.items():
        if path in told:
            continue
        one = clashes.get(path) or (several[0] if len(several) == 1 else _together(several))
        if isinstance(one, str):
            without.extend(Refusal(change.path, one, change.rename_to or "") for change in several)
        else:
            found.append(one)
    return found, [*told.values(), *without]


def _together(several: Sequence[ChangeRequest]) -> ChangeRequest | str:
    steps: list[ChangeRequest] = []
    #: Edits of the last step, which the next entry may continue.
    edits: list[list] = []
    rename, delete = None, False
    hashes = {change.base_hash for change in several if change.base_hash}
    longest = max(hashes, key=len, default="")
    if not all(longest.startswith(one) for one in hashes):
        return "the same reply changes two versions of it"
    seen: set[ChangeRequest] = set()
    for change in several:
        bare = replace(change, todo_index=None, base_hash="", rename_to=None, executable=None)
        if change.rename_to:
            if rename and rename != change.rename_to:
                return f"the same reply moves it to {rename} and to {change.rename_to}"
            rename = change.rename_to
        elif (
            rename
            and change.content is not None
            and file_names.plain(change.path) != file_names.plain(rename)
        ):
            return "the same reply moves it away and writes another file in its place"
        if bare in seen:
            continue
        seen.add(bare)
        if change.delete:
            if steps or rename:
                return "the same reply removes it and changes it"
            delete = True
        elif change.content is not None:
            if steps:
                return "the same reply gives it whole content after another change of it"
            steps.append(replace(bare, fresh=bare.fresh and not delete))
            delete = False
            edits.append([])
        elif delete:
            return "the same reply removes it and changes it"
        elif change.edits:
            if not (steps and edits[-1]):
                steps.append(bare)
                edits.append([])
            edits[-1].extend(change.edits)
        elif change.diff:
            steps.append(bare)
            edits.append([])
    if len(steps) > MOST_STEPS:
        return f"the same reply changes it in more than {MOST_STEPS} steps"
    steps = [
        replace(step, edits=tuple(some)) if some else step for step, some in zip(steps, edits, strict=True)
    ]
    first = steps[0] if steps else ChangeRequest(several[0].path, delete=delete)
    return replace(
        first,
        path=several[0].path,
        rename_to=rename,
        todo_index=next((one.todo_index for one in several if one.todo_index is not None), None),
        base_hash=longest,
        then=tuple(steps[1:]),
        executable=next((one.executable for one in reversed(several) if one.executable is not None), None),
    )

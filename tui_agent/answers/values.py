"""Contents of replies, equal in both dialects and validated item by item; and the use of each character."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers import file_names
from tui_agent.answers.lenient_json import joined
from tui_agent.answers.plans import DirectoryAction, FileAction

Item = dict[str, Any]
_begin = attrgetter("begin")
Use = Literal["call", "change", "refusal", "thought", "shown"]


class ClaimedSpan(Struct, frozen=True, gc=False):
    begin: int
    end: int
    use: Use


class Ledger:
    """A reply's text. Unclaimed text is displayed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._claimed: list[ClaimedSpan] = []

    def claim(self, begin: int, end: int, use: Use) -> None:
        if begin < end:
            self._claimed.append(ClaimedSpan(begin, end, use))

    @property
    def spans(self) -> tuple[ClaimedSpan, ...]:
        """All of the text in order, with adjacent spans of one use merged."""
        found: list[ClaimedSpan] = []
        at = 0
        for span in [
            *sorted(self._claimed, key=_begin),
            ClaimedSpan(len(self.text), len(self.text), "shown"),
        ]:
            for part in (ClaimedSpan(at, span.begin, "shown"), span):
                if part.begin >= part.end:
                    continue
                if found and found[-1].use == part.use:
                    part = ClaimedSpan(found.pop().begin, part.end, part.use)
                found.append(part)
            at = max(at, span.end)
        return tuple(found)

    def left(self, without: Iterable[Use] = ()) -> JoinedPieces:
        """Returns unclaimed text, or all text except that claimed for a use in `without`."""
        uses = frozenset(without)
        pieces: list[tuple[int, int]] = []
        at = 0
        for span in sorted(self._claimed, key=_begin):
            if uses and span.use not in uses:
                continue
            if at < span.begin:
                pieces.append((at, span.begin))
            at = max(at, span.end)
        if at < len(self.text):
            pieces.append((at, len(self.text)))
        return JoinedPieces(self, pieces)


class JoinedPieces:
    """Pieces of a reply that receive its claims."""

    def __init__(self, ledger: Ledger, pieces: list[tuple[int, int]]) -> None:
        self.ledger = ledger
        self._pieces = pieces
        self._offsets: list[int] = []
        at = 0
        for begin, end in pieces:
            self._offsets.append(at)
            at += end - begin
        self.text = "".join(ledger.text[begin:end] for begin, end in pieces)

    def claim(self, begin: int, end: int, use: Use) -> None:
        end = min(end, len(self.text))
        number = bisect_right(self._offsets, begin) - 1
        while begin < end and 0 <= number < len(self._pieces):
            first, last = self._pieces[number]
            shift = first - self._offsets[number]
            upto = min(end + shift, last)
            self.ledger.claim(begin + shift, upto, use)
            begin, number = upto - shift, number + 1


class Delta(Struct, frozen=True):
    part: Literal["summary", "message", "reasoning"]
    text: str


class TodoItem(Struct, frozen=True):
    text: str
    ai_text: str = ""
    done: bool = False

    @classmethod
    def read(cls, item: Item) -> TodoItem:
        text = text_at(item, "text").strip()
        if not text:
            raise BadItem("a todo needs `text`")
        return cls(joined(text), joined(text_at(item, "aiText")), item.get("done") is True)


class BadItem(Exception):
    """An unusable item, with the reason."""


def text_at(item: Item, key: str) -> str:
    value = item.get(key, "")
    if not isinstance(value, str):
        raise BadItem(f"{key} is not text")
    return value


class EditHunk(Struct, frozen=True, gc=False):
    """Text to find, and its replacement; `name` identifies it in errors.

    `whole`: whole lines. The other fields are of a diff. `line` is the start line in the header (from 0);
    None if the header contradicts its lines or earlier hunks. `anchors` are preceding lines. `ends_file`:
    reaches the end of the file; `final_newline` states its last newline; `marks` has each line's mark.
    """

    old: str
    new: str
    name: str = "the search text"
    whole: bool = False
    line: int | None = None
    anchors: tuple[str, ...] = ()
    ends_file: bool = False
    final_newline: bool | None = None
    marks: str = ""

    @property
    def context(self) -> tuple[int, int]:
        """Context lines at the beginning and end of a diff's hunk."""
        marks = self.marks
        return len(marks) - len(marks.lstrip(" ")), len(marks) - len(marks.rstrip(" "))

    @property
    def added(self) -> list[str]:
        """Written lines; in a diff those with `+`."""
        lines = self.new.split("\n")
        marks = self.marks.replace("-", "")
        return [line for line, mark in zip(lines, marks, strict=False) if mark == "+"] if marks else lines


CHANGE_WORDS = (
    "Proposed changes, one entry per file, in exactly one form: edits, content, diff, delete or renameTo (which "
    "may be beside another)."
)
CHANGE_ENTRY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "description": "From the workspace root, with /."},
        "todoIndex": {
            "type": "integer",
            "minimum": 0,
            "description": "The todo of this reply that it belongs to, from 0.",
        },
        "baseHash": {"type": "string", "description": "Hash of the version you edit, as shown to you."},
        "edits": {
            "type": "array",
            "description": "Preferred for existing files.",
            "items": {
                "type": "object",
                "properties": {
                    "search": {
                        "type": "string",
                        "description": (
                            "Exact text, without line numbers, long enough to occur only once in the file."
                        ),
                    },
                    "replace": {
                        "type": "string",
                        "description": "The text to put there instead; empty to remove it.",
                    },
                },
                "required": ["search", "replace"],
                "additionalProperties": False,
            },
        },
        "content": {
            "type": "string",
            "description": "The whole text, for a new or rewritten file; nothing left out.",
        },
        "diff": {"type": "string", "description": "A unified diff of this file."},
        "delete": {"type": "boolean"},
        "renameTo": {"type": "string"},
    },
    "required": ["path"],
    "additionalProperties": False,
}
CHANGE_SECTION = (
    "# Changes\nOne entry per file. For an existing file prefer `edits`: `search` is copied from the "
    "file character by character (without the `12: ` line numbers, with its indentation) and long "
    "enough to occur only once; `replace` takes its place. Write whole `content` only for a new file"
    ' or one that changes almost everywhere, and never shorten it with remarks such as "rest '
    'unchanged": such a change is refused. `diff` is a unified diff, `delete` removes the file, '
    "`renameTo` moves it. `baseHash` is the hash you were shown for the version you edit. Tie each "
    "change to its todo with `todoIndex`, which counts from 0 in this reply. If you are told that a "
    "change could not be placed, look at the lines you are shown and send that change again, whole."
)
#: Beside one of these, empty content is a filled-in property.
_FORMS = ("edits", "diff", "delete", "renameTo")


class ChangeRequest(Struct, frozen=True, gc=False):
    """A change of one file, in exactly one form.

    - content: the whole new text.
    - edits: searched one by one.
    - diff: hunks of a diff or envelope, in file order.
    - delete: removes the file; a diff may list its lines.
    - rename_to: moves the file; may accompany `edits`, `diff` or `content`.
    - base_hash: first digits of the known version's hash.
    - fenced: found in prose, so `content` may be an excerpt.
    - labelled: the path is only in the line above the fence.
    - fresh: a diff that adds the file.
    - then: further changes of this file, in order. Each applies to the original file, or else to the previous
      result.
    - executable: the new state; None keeps it.
    - offered: the reason why only the user may accept it; "" if it is proposed.
    """

    path: str
    content: str | None = None
    edits: tuple[EditHunk, ...] = ()
    diff: tuple[EditHunk, ...] = ()
    delete: bool = False
    rename_to: str | None = None
    todo_index: int | None = None
    base_hash: str = ""
    fenced: bool = False
    labelled: bool = False
    fresh: bool = False
    then: tuple[ChangeRequest, ...] = ()
    executable: bool | None = None
    offered: str = ""

    @classmethod
    def read(cls, item: Item) -> ChangeRequest:
        """Raises `BadItem`."""
        value = item.get("edits", [])
        if not isinstance(value, list) or not all(isinstance(edit, dict) for edit in value):
            raise BadItem("`edits` is not a list of objects")
        if any("search" not in edit or "replace" not in edit for edit in value):
            raise BadItem("each edit needs `search` and `replace`")
        edits = [EditHunk(text_at(edit, "search"), text_at(edit, "replace")) for edit in value]
        edits = tuple(edit for edit in edits if edit.old or edit.new)
        delete = item.get("delete") is True
        content = text_at(item, "content") if "content" in item else None
        diff = text_at(item, "diff")
        rename = text_at(item, "renameTo").strip() or None
        if rename and file_names.plain(rename) == file_names.plain(text_at(item, "path").strip()):
            rename = None
        if content == "" and any(key in item for key in _FORMS):
            content = None
        forms = [form for form in (content is not None, bool(edits), bool(diff), delete) if form]
        if len(forms) > 1:
            raise BadItem(
                "more than one of `content`, `edits`, `diff` and `delete` is set; send the one that is meant"
            )
        if not forms and not rename:
            raise BadItem("none of `content`, `edits`, `diff`, `delete` and `renameTo` is set")
        index = item.get("todoIndex")
        return cls(
            path=file_names.plain(text_at(item, "path").strip()),
            content=content,
            edits=edits,
            delete=delete,
            rename_to=rename and file_names.plain(rename),
            todo_index=index if isinstance(index, int) and not isinstance(index, bool) else None,
            base_hash=text_at(item, "baseHash").strip(),
        )

    @property
    def texts(self) -> Iterator[str]:
        """Written and searched texts, including `then`."""
        yield from (text for text in (self.content, self.rename_to) if text)
        for edit in (*self.edits, *self.diff):
            yield from (edit.old, edit.new)
        for step in self.then:
            yield from step.texts

    @property
    def added(self) -> Iterator[str]:
        """Written lines, including `then`."""
        yield from (self.content or "").split("\n")
        for edit in (*self.edits, *self.diff):
            yield from edit.added
        for step in self.then:
            yield from step.added

    def with_texts(self, form: Callable[[str], str]) -> ChangeRequest:

        def formed(edits: tuple[EditHunk, ...]) -> tuple[EditHunk, ...]:
            return tuple(
                replace(edit, old=form(edit.old), new=form(edit.new), anchors=tuple(map(form, edit.anchors)))
                for edit in edits
            )

        return replace(
            self,
            content=self.content and form(self.content),
            edits=formed(self.edits),
            diff=formed(self.diff),
            then=tuple(step.with_texts(form) for step in self.then),
        )


class ShownText(Struct, frozen=True, gc=False):
    """A fence without a file name: text, hunks if it is a diff, and the possible file."""

    text: str
    diff: tuple[EditHunk, ...] | None = None
    path: str = ""


class Refusal(Struct, frozen=True):
    path: str
    why: str
    rename_to: str = ""

    @property
    def sentence(self) -> str:
        what = f"The change to {self.path}" if self.path else "A change in the answer"
        return f"{what} was rejected: {self.why}."


class SearchRequest(Struct, frozen=True):
    """A literal, or an expression if `regex`, in files that match `glob`."""

    pattern: str
    glob: str = ""
    regex: bool = False

    @classmethod
    def read(cls, item: Item) -> SearchRequest:
        if not text_at(item, "pattern"):
            raise BadItem("a search needs `pattern`")
        return cls(text_at(item, "pattern"), text_at(item, "glob"), item.get("regex") is True)


class SubTaskRequest(Struct, frozen=True):
    id: str
    goal: str
    files: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    auto_execute: bool = False
    agent: str = ""

    @classmethod
    def read(cls, item: Item) -> SubTaskRequest:
        files, dependencies = (
            tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()
            for value in (item.get("files"), item.get("dependencies"))
        )
        task = cls(
            id=text_at(item, "id").strip(),
            goal=joined(text_at(item, "goal")),
            files=files,
            dependencies=dependencies,
            auto_execute=item.get("autoExecute") is True,
            agent=text_at(item, "agent").strip() if item.get("agent") is not None else "",
        )
        if not task.id or not task.goal:
            raise BadItem("a sub-task needs `id` and `goal`")
        return task


class NextStep(Struct, frozen=True):
    """`input_text` is entered when it is chosen."""

    label: str
    input_text: str

    @classmethod
    def read(cls, item: Item) -> NextStep:
        label = joined(text_at(item, "html").strip())
        if not label:
            raise BadItem("a next step needs `html`")
        return cls(label, joined(text_at(item, "inputText")) or label)


class ToolCall(Struct, frozen=True):
    """`arguments` is JSON text; broken JSON is rewritten.

    `entries` are its valid entries, as in a structured reply; `faults` are sentences about others.
    `fault` is the reason why it cannot be fully executed, and is returned to the model.
    """

    id: str
    name: str
    arguments: str
    fault: str = ""
    entries: tuple[Any, ...] = ()
    faults: tuple[str, ...] = ()


class Reply(Struct, frozen=True):
    """A complete answer. `todos` is None without a list of todos.

    `cut`: the stream ended early; `changes` has only complete ones. `faults` are sentences about
    unreadable parts, sent to the model once. `refused` files have no entry in `changes`.
    """

    summary: str = ""
    message: str = ""
    todos: tuple[TodoItem, ...] | None = None
    changes: tuple[ChangeRequest, ...] = ()
    files: tuple[FileAction, ...] = ()
    directories: tuple[DirectoryAction, ...] = ()
    searches: tuple[SearchRequest, ...] = ()
    sub_tasks: tuple[SubTaskRequest, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False
    faults: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    #: Not proposed, but the user may apply them; with fences without a file name.
    offered: tuple[ChangeRequest, ...] = ()
    shown: tuple[ShownText, ...] = ()
    spans: tuple[ClaimedSpan, ...] = ()
    #: Why it was cut, without a full stop; "" if unknown.
    why: str = ""
    #: Unparsed entries by unknown key.
    others: dict[str, tuple[dict[str, Any], ...]] = {}

    def entries(self, key: str) -> tuple[Any, ...]:
        """Returns the entries under a structured reply's key, in either dialect."""
        match key:
            case "todos":
                return self.todos or ()
            case "fileChanges":
                return (*self.changes, *self.refused, *self.offered)
            case "fileRequests":
                return self.files
            case "directoryRequests":
                return self.directories
            case "searches":
                return self.searches
            case "subTasks":
                return self.sub_tasks
            case "nextSteps":
                return self.next_steps
        return self.others.get(key, ())

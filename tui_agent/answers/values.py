"""What a model said, as values: the same in both dialects, checked item by item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.ledger import UsedText
from tui_agent.answers.plans import DirectoryAction, FileAction


class Delta(Struct, frozen=True):
    """A new piece of what the person reads while a reply is still being written."""

    part: Literal["summary", "message", "reasoning"]
    text: str


class TodoItem(Struct, frozen=True):
    """One todo as the model wrote it: `text` for the person, `ai_text` the details it wants to remember."""

    text: str
    ai_text: str = ""
    done: bool = False


class EditHunk(Struct, frozen=True, gc=False):
    """Text to find, and what replaces it; `name` says in errors what it is.

    With `whole` it consists of whole lines. The rest comes from a diff. `line` is where the header says that it begins
    (from 0), None also where the header cannot be right: its counts are not those of the lines, or its two line
    numbers do not go with the hunks before it. `anchors` are lines that stand somewhere before it. `ends_file` says
    that it reaches the end, `final_newline` what it says of the file's last newline; `marks` has the mark of each of
    its lines.
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
        """How many lines of a diff's hunk stay as they are at its beginning and at its end."""
        marks = self.marks
        return len(marks) - len(marks.lstrip(" ")), len(marks) - len(marks.rstrip(" "))

    @property
    def added(self) -> list[str]:
        """The lines that it writes; of a diff those with a `+`."""
        lines = self.new.split("\n")
        marks = self.marks.replace("-", "")
        return [line for line, mark in zip(lines, marks, strict=False) if mark == "+"] if marks else lines


class ChangeRequest(Struct, frozen=True, gc=False):
    """One file's change in the form the model chose; exactly one of the forms is set.

    `content` is the whole new text, `edits` are searched for one by one, `diff` are the hunks of a diff or an envelope
    and follow each other in the file, `delete` removes the file (a diff may show its lines), `rename_to` moves it
    (and may stand beside `edits`, `diff` or `content`). `base_hash` names the version that was seen (its first
    digits). `fenced` says that it was in prose: `content` may be an excerpt and not the whole; `labelled` that the
    fence itself does not name the path, only the line above it does; `fresh` that a diff adds the file. `then` holds
    what else the same reply does to this file, in order: each is read against the file as it was, else against what
    the ones before it made. `executable` says whether the file becomes executable, or ceases to be; None keeps what
    it is. `offered` says why nobody but
    the person may take it, empty where it is proposed.
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

    @property
    def texts(self) -> Iterator[str]:
        """All that it would write or search for, its steps too."""
        yield from (text for text in (self.content, self.rename_to) if text)
        for edit in (*self.edits, *self.diff):
            yield from (edit.old, edit.new)
        for step in self.then:
            yield from step.texts

    @property
    def added(self) -> Iterator[str]:
        """The lines that it would write, its steps too."""
        yield from (self.content or "").split("\n")
        for edit in (*self.edits, *self.diff):
            yield from edit.added
        for step in self.then:
            yield from step.added

    def with_texts(self, form: Callable[[str], str]) -> ChangeRequest:
        """The same with what is to be written or searched for in another form."""

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
    """A fence that names no file: its text, the hunks of one that is a diff, and the file that it may be about."""

    text: str
    diff: tuple[EditHunk, ...] | None = None
    path: str = ""


class Refusal(Struct, frozen=True):
    """A change of one file that was asked for and cannot be read with certainty: nothing of it is taken.

    `path` is empty where nothing says which file was meant.
    """

    path: str
    why: str
    rename_to: str = ""

    @property
    def sentence(self) -> str:
        what = f"The change to {self.path}" if self.path else "A change in the answer"
        return f"{what} was not taken: {self.why}."


class SearchRequest(Struct, frozen=True):
    """Text the model wants to find: a literal (or, with `regex`, an expression) in files that fit `glob`."""

    pattern: str
    glob: str = ""
    regex: bool = False


class SubTaskRequest(Struct, frozen=True):
    """A part of the work that the model would give to a child session."""

    id: str
    goal: str
    files: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    auto_execute: bool = False


class NextStep(Struct, frozen=True):
    """A choice offered to the person: `label` is plain text, `input_text` is what choosing it types."""

    label: str
    input_text: str


class ToolCall(Struct, frozen=True):
    """One function call as the provider sent it; `arguments` is JSON text (broken JSON is rewritten).

    `entries` are what was read of them, as the same values that a structured reply has under the tool's key; `faults`
    are sentences about those that were not. `fault` says why it cannot be answered with all that it asks for; the
    model gets it as the result.
    """

    id: str
    name: str
    arguments: str
    fault: str = ""
    entries: tuple[Any, ...] = ()
    faults: tuple[str, ...] = ()


class Reply(Struct, frozen=True):
    """One whole answer. `todos` is None where the reply says nothing about todos.

    `cut` is true when the stream ended before the model did; then `changes` holds only those whose text is
    complete. `faults` are sentences about what could not be read; the model is told them once. `refused` are
    the files that some of those are about: no change of theirs is in `changes`.
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
    #: Changes that are shown rather than proposed, and fences that name no file: the person may take them.
    offered: tuple[ChangeRequest, ...] = ()
    shown: tuple[ShownText, ...] = ()
    #: What became of every character of the answer's text.
    spans: tuple[UsedText, ...] = ()
    #: What cut it, as a sentence without its full stop; "" where nobody knows.
    why: str = ""
    #: Entries under keys that no field above is for, as they were written.
    others: dict[str, tuple[dict[str, Any], ...]] = {}

    def entries(self, key: str) -> tuple[Any, ...]:
        """What the reply has under a key of a structured reply, whichever dialect it is in."""
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

"""Composes a request: the conversation as sent, plus one new message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.context import editor, file_contents, known_files, prompt
from tui_agent.context.blocks import item
from tui_agent.context.editor import OpenFile
from tui_agent.context.known_files import table_row
from tui_agent.context.memory import shortened
from tui_agent.context.prompt import ContextFile, DirectoryListing, as_sent
from tui_agent.edits.change import Change, proposing_tasks
from tui_agent.model.client import ModelRequest
from tui_agent.model.parts import Message, calls_of
from tui_agent.store.conversation import ConversationSlice, SentMessage
from tui_agent.store.events import RequestSent
from tui_agent.store.files import with_unsaved
from tui_agent.store.graph import SubTask
from tui_agent.store.state import State
from tui_agent.tools.tool import Invocation, LoadedFiles, ToolResult
from tui_agent.turn.context import TurnContext, shared_beginning
from tui_agent.turn.conversation import Sizes, head_of, keep
from tui_agent.turn.exchange import mask_messages
from tui_agent.turn.model_choice import request_options
from tui_agent.turn.pastes import with_pastes
from tui_agent.turn.pictures import Picture, with_pictures

TASKS_TITLE = "## SUB-TASKS"


def task_rows(tasks: Sequence[SubTask], changes: Sequence[Change] = ()) -> dict[str, str]:
    disputes = [
        (change, *proposing_tasks(change, changes)) for change in changes if change.state == "conflict"
    ]
    rows = {}
    for task in tasks:
        conflicts = ""
        for change, mine, theirs in disputes:
            if task.id in (*mine, *theirs):
                others = theirs if task.id in mine else mine
                rival = f"that of {' and '.join(others)}" if others else "one of yours or of the person"
                conflicts += (
                    f" Its change to {change.path} conflicts with {rival}: the person decides between them."
                )
        rows[task.id] = _row(task, conflicts)
    return rows


def changed_rows(now: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    gone = {name: f"{name}: taken out by the person" for name in told if name not in now}
    return {name: row for name, row in {**now, **gone}.items() if told.get(name) != row}


def task_section(new_rows: Mapping[str, str]) -> str:
    return "\n".join([TASKS_TITLE, *(f"- {item(row)}" for row in new_rows.values())]) if new_rows else ""


def _row(task: SubTask, conflicts: str) -> str:
    match task.state:
        case "pending":
            return f"{task.id}: waits for {', '.join(task.dependencies)}"
        case "failed":
            return f"{task.id}: failed, {task.reason}"
        case "completed":
            changed = " It changed no file."
            if task.changed:
                beyond = f" (beside its files: {', '.join(task.outside)})" if task.outside else ""
                paths = ", ".join(step.path for step in task.changed)
                changed = f" Changed, and shown to the person for review: {paths}{beyond}."
            return f"{task.id}: completed. {task.summary}{changed}{conflicts}"
        case _:
            return f"{task.id}: {task.state}"


GO_ON = "Here is what you asked for. Go on with the request."
NOTHING = "Nothing was found."
SEE_NEXT = "See the message that follows."
PICTURES = "The pictures of the results."
NOT_ANSWERED = "Error: the turn was stopped before this was answered: ask again if you still need it."
LEFT_OUT = ""
#: Parts of a message in mode `ask`, and of the first one in another mode.
ASK = (
    "The mode is ask: answer, explain or make a plan in words. Do not propose changes or sub-tasks and do not run "
    "commands; such calls are refused. The person changes the mode to have a plan carried out."
)
ASK_ENDED = "The mode is no longer ask: you can propose changes and run commands."
#: Lines, and characters per line, of shortened program output.
MOST_IN_BRIEF, BRIEF = 20, 200
#: Tokens per message beyond its text.
AROUND_A_MESSAGE = 4


class AnsweredCall(Struct, frozen=True):
    call: Invocation
    result: ToolResult
    waits: bool = False
    pictures: tuple[Picture, ...] = ()


class Draft(Struct, frozen=True):
    """Additions of the next request."""

    query: str = ""
    #: The user asked to continue the current work.
    goes_on: bool = False
    #: Files without a call: from the plan, bundles and reloads.
    loaded: LoadedFiles = LoadedFiles()
    listings: tuple[DirectoryListing, ...] = ()
    #: Calls of the last reply, in order.
    answered: tuple[AnsweredCall, ...] = ()
    memory: str = ""
    #: With `excerpts`, a part of each file.
    opened: tuple[OpenFile, ...] = ()
    excerpts: bool = False
    brief: bool = False
    contexts: tuple[ContextFile, ...] = ()
    pictures: tuple[Picture, ...] = ()
    #: A warning shown only after this request succeeds.
    doubt: str = ""

    @property
    def everything(self) -> LoadedFiles:
        loaded = self.loaded
        for one in self.answered:
            loaded = loaded.plus(one.result.loaded)
        return loaded

    def changed(self, change: Callable[[LoadedFiles], LoadedFiles]) -> Draft:
        answered = tuple(
            replace(one, result=replace(one.result, loaded=change(one.result.loaded)))
            if one.result.loaded.files
            else one
            for one in self.answered
        )
        return replace(self, loaded=change(self.loaded), answered=answered)


class ComposedRequest(Struct, frozen=True):
    """`bytes` is the total length sent; `calls` are the ids of all earlier calls."""

    draft: Draft
    request: ModelRequest
    event: RequestSent
    bytes: int
    calls: frozenset[str]

    @property
    def size(self) -> int:
        return self.event.tokens + AROUND_A_MESSAGE * len(self.request.messages)


class _Written(NamedTuple):
    """`sizes` and `held` keys belong to the `new` messages, `last` are withdrawn texts of the previous
    request, `calls` the ids of earlier calls.
    """

    messages: list[Message]
    texts: list[str]
    new: list[Message]
    sizes: list[Sizes]
    held: list[str]
    last: list[str]
    calls: frozenset[str]


def _write(context: TurnContext, before: ConversationSlice, newest: _Newest) -> _Written:
    """One thread call, because the loop may draw a frame at every wait."""
    kept = context.sent.read(context.core.blobs, (*before.messages, *before.last))
    earlier, last = kept[: len(before.messages)], kept[len(before.messages) :]
    made = newest.messages([one.message for one in earlier])
    new = mask_messages(context, [message for message, _ in made])
    texts = [*map(as_sent, new)]
    return _Written(
        [one.message for one in earlier] + new,
        [one.text for one in earlier] + texts,
        new,
        [sizes for _, sizes in made],
        [*map(context.core.blobs.hold_text, texts)],
        [one.text for one in last],
        frozenset(call.id for one in earlier for call in calls_of(one.message)),
    )


async def compose(context: TurnContext, draft: Draft, state: State | None = None) -> ComposedRequest:
    """The conversation must have begun. With nothing to add, it is unchanged."""
    state = state or context.core.state
    before, head = state.conversation, head_of(context)
    written, draft = draft, replace(draft, query=await with_pastes(context, draft.query))
    newest = _Newest(state, draft, asks=context.core.mode == "ask")
    # Numbering the lines of long files would block the event loop.
    made = await asyncio.to_thread(_write, context, before, newest)
    sent, exact = await keep(context, made.new, made.sizes, made.held)
    everything = (*before.messages, *sent)
    share = shared_beginning(made.last, made.texts)
    event = RequestSent(
        turn=context.turn,
        purpose="main",
        messages=sent,
        files=newest.files,
        rows=newest.rows,
        blocks=newest.digests,
        contexts=newest.contexts,
        tasks=newest.tasks,
        uploads=tuple(file.file_id for file in draft.everything.files if file.file_id),
        tokens=before.head_tokens + sum(message.tokens for message in everything),
        estimated=not exact,
        parts=parts_of(everything, before.head_tokens),
        prefix_share=round(share, 6),
        reset=before.restarts,
        model=state.model.name,
        protocol=state.model.protocol,
        asks=newest.asks,
    )
    asked = request_options(context.core.settings, state, state.model.name)
    request = ModelRequest(
        model=state.model.name,
        messages=tuple(made.messages),
        purpose="subtask" if context.part else "main",
        tools=head.tools,
        schema=head.schema,
        timeout=float(context.core.settings.request_timeout),
        files=context.provider_files.ids if context.provider_files else (),
        most=asked.most,
        effort=asked.effort,
        temperature=asked.temperature,
        session=state.session.id,
        cache="long" if context.part or context.sent.paused else "short",
    )
    size = sum(len(text.encode(errors="replace")) for text in (*made.texts, head.text))
    return ComposedRequest(written, request, event, size, made.calls)


def parts_of(messages: Sequence[SentMessage], head: int) -> dict[str, int]:
    """In tokens; the head counts as system."""
    files = sum(message.files for message in messages)
    rules = sum(message.instructions for message in messages)
    system = sum(m.tokens - m.files - m.instructions for m in messages if m.role == "system")
    total = sum(message.tokens for message in messages)
    return {
        "system": system + head,
        "instructions": rules,
        "files": files,
        "history": max(0, total - system - rules - files),
    }


class _Newest:
    """Each call gets a result with the requested content; the user message has the rest."""

    def __init__(self, state: State, draft: Draft, *, asks: bool) -> None:
        self._state = state
        self.asks = asks if draft.query else state.conversation.asks
        self._draft = draft
        self._before = state.conversation
        self._all = draft.everything
        open_calls = set(self._before.open_calls)
        self._results = {one.call.id: one.result for one in draft.answered if one.call.id in open_calls}
        self._others = [one.result for one in draft.answered if one.call.id not in open_calls]
        opened = [replace(file, brief=draft.excerpts) for file in draft.opened]
        self.blocks = editor.blocks(opened)
        self._new_blocks = editor.new_blocks(self.blocks, self._before.blocks)
        self._attached = {
            file.path: file.md5
            for file in editor.attached(opened)
            if f"file:{file.path}" in self._new_blocks and editor.excerpt(file).whole
        }
        self._new_blocks |= {
            name: text
            for name, text in editor.references(opened, self._before.files).items()
            if name in self._new_blocks
        }
        self._gone_blocks = editor.gone_blocks(
            self.blocks, self._before.blocks, {buffer.path for buffer in state.buffers.open}
        )
        again = self._all.again.items()
        self._in_view = file_contents.FilesInPrompt(
            self._before.files,
            {path: entry.written for path, entry in again if entry.written_known and entry.whole},
            self._attached,
        )
        self.tasks = changed_rows(task_rows(state.subtasks.tasks, state.review.changes), self._before.tasks)
        all_of_them = draft.goes_on and bool(draft.query)
        rows = {path: table_row(entry, 0) for path, entry in with_unsaved(state.known, state.buffers).items()}
        left_out = known_files.left_out_line(len(state.known.dropped))
        if left_out:
            rows[LEFT_OUT] = left_out
        told: Mapping[str, str] = {} if all_of_them else state.conversation.rows
        self.rows = {path: row for path, row in rows.items() if told.get(path) != row}
        self._new_contexts, self._gone = prompt.changed_files(draft.contexts, self._before.contexts)
        self.contexts = {file.path: file.md5 for file in self._new_contexts} | dict.fromkeys(self._gone, "")
        #: A file in view as a whole stays whole if a part is requested again.
        self.files = {
            file.path: file.md5 if self._before.files.get(file.path) == file.md5 else file.view
            for file in self._all.files
        } | self._attached
        #: Table rows in a result.
        self._told_rows: set[str] = set()

    @property
    def digests(self) -> dict[str, str]:
        return {name: editor.digest(text) for name, text in self.blocks.items()} | dict.fromkeys(
            self._gone_blocks, ""
        )

    def messages(self, earlier: Sequence[Message]) -> list[tuple[Message, Sizes]]:
        results = [self._result(call) for call in self._before.open_calls]
        query = self._draft.query
        awaited = not results and bool(earlier) and earlier[-1]["role"] == "assistant"
        text = self._text(query or (GO_ON if awaited else ""))
        pictures = (*self._draft.pictures, *(it for one in self._draft.answered for it in one.pictures))
        if not text and not pictures:
            return results
        others = [result.loaded for result in self._others]
        files = [*self._draft.loaded.asked_for, *(file for one in others for file in one.asked_for)]
        shown = file_contents.read_files_result(files, self._in_view) if files else ""
        blocks = sum(len(text) for name, text in self._new_blocks.items() if name.startswith("file:"))
        sizes = Sizes(
            len(shown) + len(file_contents.bundle_section(self._all.bundled)) + blocks,
            len(prompt.instructions_section(self._new_contexts, self._gone)),
        )
        message = with_pictures({"role": "user", "content": text or PICTURES}, pictures, earlier)
        return [*results, (message, sizes)]

    def _result(self, call: str) -> tuple[Message, Sizes]:
        result = self._results.get(call)
        if result is None:
            content, files = self._before.answered.get(call) or NOT_ANSWERED, ()
        elif any(file.file_id for file in result.loaded.files):
            # Providers accept references to uploaded files only in user messages.
            self._others.append(result)
            content, files = SEE_NEXT, ()
        else:
            files = result.loaded.asked_for
            paths = {file.path for file in files} & set(self.rows) - self._told_rows
            self._told_rows |= paths
            news = prompt.MessageParts(
                rows=tuple(self._row(path) for path in self.rows if path in paths),
                listings=result.listings,
                found=result.text,
                facts=result.loaded.facts,
                files=files,
            )
            content = prompt.user_text(news, self._in_view) or NOTHING
        size = len(file_contents.read_files_result(files, self._in_view)) if files else 0
        self._in_view = replace(
            self._in_view, sent={**self._in_view.sent, **{file.path: self.files[file.path] for file in files}}
        )
        return {"role": "tool", "tool_call_id": call, "content": content}, Sizes(size)

    def _text(self, query: str) -> str:
        rows = [self._row(path) for path in self.rows if path != LEFT_OUT and path not in self._told_rows]
        draft, others = self._draft, self._others
        news = prompt.MessageParts(
            query=query,
            rows=tuple(rows),
            left_out=self.rows.get(LEFT_OUT, ""),
            facts=(
                *self._before.untold,
                *draft.loaded.facts,
                *(fact for one in others for fact in one.loaded.facts),
            ),
            listings=(*draft.listings, *(listing for one in others for listing in one.listings)),
            found="\n\n".join(one.text for one in others if one.text),
            bundled=self._all.bundled,
            memory=draft.memory,
            sub_tasks=task_section(self.tasks),
            new_contexts=tuple(self._new_contexts),
            gone_contexts=tuple(self._gone),
            files=(*draft.loaded.asked_for, *(file for one in others for file in one.loaded.asked_for)),
            editor_blocks=self._new_blocks | self._gone_blocks,
            mode=ASK if query and self.asks else ASK_ENDED if self._before.asks and not self.asks else "",
        )
        if draft.brief:
            facts = tuple(shortened(fact, BRIEF) for fact in news.facts[-MOST_IN_BRIEF:])
            missing = len(news.facts) - len(facts)
            news = replace(
                news,
                facts=(f"{missing} older facts are skipped.", *facts) if missing else facts,
                rows=news.rows[-MOST_IN_BRIEF:],
                memory=shortened(news.memory, MOST_IN_BRIEF * BRIEF),
                sub_tasks=shortened(news.sub_tasks, MOST_IN_BRIEF * BRIEF),
                found=shortened(news.found, MOST_IN_BRIEF * BRIEF),
                listings=(),
            )
        return prompt.user_text(news, self._in_view)

    def _row(self, path: str) -> str:
        """A reloaded file keeps its mark in the message that contains it."""
        entry = with_unsaved(self._state.known, self._state.buffers)[path]
        turn = self._state.turn.number
        before = self._all.again.get(path)
        if before is None:
            return table_row(entry, turn)
        marked = replace(
            entry,
            freshness=before.freshness,
            modified_turn=before.modified_turn,
            written_known=False,
            renamed_to=before.renamed_to,
        )
        again = any(file.path == path for file in self._all.bundled) or any(
            file.path == path and self._in_view.reference(file) in (None, {"attached": True})
            for file in self._all.asked_for
        )
        return table_row(marked, turn, again)

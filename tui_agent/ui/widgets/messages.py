"""What was said, as blocks: one for each message of the transcript, and one that grows while a reply streams."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.timer import Timer
from textual.widget import MountError, Widget
from textual.widgets import Static

from tui_agent.answers.gist import holds
from tui_agent.edits.change import Change
from tui_agent.store.state import ChatMessage, PlanSlice, ReplySlice, ReviewSlice, ToolUse
from tui_agent.store.usage import estimated_tokens
from tui_agent.ui.sink import label, parts, plain
from tui_agent.ui.textual_patches.grown_widgets import GrowsAtEnd
from tui_agent.ui.widgets.broken import GuardedText, or_broken
from tui_agent.ui.widgets.command_output import CommandOutput, FoldLine, PlaceLink

if TYPE_CHECKING:
    from tui_agent.ui.markdown.message_text import MessageText
    from tui_agent.ui.widgets.plan_block import PlanBlock

#: Seconds between two drawings of a reply that streams.
STREAM_INTERVAL = 0.1
#: How many times as long as the last drawing took there is none, so that a long reply leaves room for keys.
REST = 3
#: Characters that may be drawn at once.
SHORT = 2_000
#: Characters of reasoning, and of a summary that still streams, that are shown: the newest.
SHOWN = 8_000
#: So many places where a check failed are listed below it.
MOST_LINKS = 5
#: So many reads in a row are one line of the transcript.
LONG_RUN = 3
#: Of more lines of calls in one message the newest few are shown, and the others are one line.
MOST_LINES, NEWEST = 8, 4
#: What came of each call is not listed for more of them in one line.
MOST_DETAILS = 20
READS = frozenset({"read_files", "list_directory", "search_text", "find_files"})
#: Who speaks, where no colour says it.
_SPEAKERS = {"person": "You:", "agent": "The model:"}
#: What may be more than one plain paragraph on one line.
_MARKDOWN = re.compile(r"[*_`#\[\]|<>~&\\\n]|^\s|^([-+=]|\d+[.)])|  |.{2000}")


class MessageBlock(Vertical, GrowsAtEnd):
    """One message, also while it is still coming: `grow` draws it as it is so far, `finish` ends it where it is."""

    def __init__(self, message: ChatMessage | None = None, facts: str = "", unfolded: bool = False) -> None:
        """Without a message it is a reply that streams."""
        kind, level = (message.kind, message.level) if message else ("agent", "info")
        super().__init__(classes=f"message -{kind} -{level}")
        self.message = message
        self.facts = facts
        self._unfolded = unfolded
        self._thoughts: Reasoning | None = None
        self._summary: MessageText | None = None
        self._body: MessageText | None = None
        self._facts_line: Static | None = None
        self._reply = ReplySlice()
        self._due: Timer | None = None
        self._took = 0.0
        self._plan: PlanBlock | None = None
        #: Whether it is near what is in view, and so measured first where it gets another width.
        self.near = True

    def compose(self) -> Iterable[Widget]:
        message = self.message
        if getattr(self.app, "plain", False) and (
            speaker := _SPEAKERS.get(message.kind if message else "agent")
        ):
            yield Static(speaker, markup=False)
        if message is None:
            return
        if message.command is not None:
            yield CommandOutput(message.command, message.check)
            places = message.check.places[:MOST_LINKS] if message.check else ()
            yield from (PlaceLink(place) for place in places)
            return
        if message.reasoning or message.thinking:
            self._thoughts = Reasoning(message.reasoning, message.thinking, self._unfolded)
            yield self._thoughts
        if message.kind == "agent":
            yield from _agent_text(message.headline, message.text)
        else:
            yield _words(message.text, "words")
        yield from (CallLine(uses) for uses in grouped(message.calls))
        if self.facts:
            self._facts_line = _line_of(self.facts)
            yield self._facts_line

    def show_calls(self, message: ChatMessage) -> None:
        """The calls that it made, as they are answered one after the other, and the thinking between them; what was
        opened stays open."""
        before = self.message
        if before is not None and message.command != before.command:  # another one followed it
            self.message = message
            self.refresh(recompose=True)
            return
        if before is None or (message.calls == before.calls and message.reasoning == before.reasoning):
            return
        self.message = message
        if self.is_mounted:
            self._draw_calls(message.calls)
            if message.reasoning != before.reasoning:
                self.run_worker(self._draw_thoughts(message.reasoning, message.thinking), exit_on_error=False)

    def on_mount(self) -> None:
        if self.message is not None:
            self._draw_calls(self.message.calls)  # one may have been answered since the block was composed

    def _draw_calls(self, calls: Sequence[ToolUse]) -> None:
        there, groups = list(self.query(CallLine)), grouped(calls)
        for line, uses in zip(there, groups, strict=False):
            line.show(uses)
        for uses in groups[len(there) :]:
            self.mount(CallLine(uses), before=self._facts_line)
        for line in there[len(groups) :]:
            line.remove()

    def fold_line(self, at: int) -> FoldLine | None:
        """The command or the call of that number among those that can be unfolded; None where it is not drawn."""
        lines = list(self.query(FoldLine))
        return lines[at] if 0 <= at < len(lines) else None

    def show_facts(self, facts: str) -> None:
        """What became of it; also before it is composed, and while the screen goes away, when there is no line."""
        if facts == self.facts:
            return
        self.facts = facts
        if self._facts_line is not None:
            self._facts_line.update(label(facts))
            self._facts_line.display = bool(facts)
        elif self.is_mounted:
            self._facts_line = _line_of(facts)
            self.mount(self._facts_line)

    def select_code(self, code: str) -> Region | None:
        """Select a block of code in the message; where it is among all messages, None where it is not drawn."""
        for text in self.query("MessageText"):
            if (region := cast("MessageText", text).select_code(code)) is not None:
                return region.translate(self.virtual_region.offset + text.virtual_region.offset)
        return None

    def show_plan(self, plan: PlanSlice) -> None:
        """How the files of this request are found, live; the newest plan of its turn."""
        if self._plan is None and plan.actions and self.is_mounted:
            from tui_agent.ui.widgets.plan_block import PlanBlock

            self._plan = PlanBlock()
            self.mount(self._plan)
        if self._plan is not None:
            self._plan.show(plan)

    # ── while it streams ─────────────────────────────────────────────────────────────────────────────────

    def grow(self, reply: ReplySlice) -> None:
        """Draw this much of the reply soon."""
        self._reply = reply
        if self._due is None:
            self._due = self.set_timer(max(STREAM_INTERVAL, REST * self._took), self._draw_reply)

    async def _draw_reply(self) -> None:
        begun, reply = time.monotonic(), self._reply
        try:
            await self._draw_thoughts(reply.reasoning, 0)
            await self._draw(reply.summary, reply.message, growing=True)
        except MountError:
            return  # the reply was taken back meanwhile, and this block is going
        self._took, self._due = time.monotonic() - begun, None
        if self._reply is not reply and self.message is None:
            self.grow(self._reply)

    def finish(self, message: ChatMessage, facts: str) -> None:
        """The reply is complete: what is drawn of it stays, and what came since its last drawing is added at once."""
        self.message = message
        if self._due is not None:
            self._due.stop()
        self.run_worker(self._draw_end(message), exit_on_error=False)
        self.show_facts(facts)

    async def _draw_end(self, message: ChatMessage) -> None:
        await self._draw_thoughts(message.reasoning, message.thinking)
        await self._draw(message.summary, message.text, growing=False)
        self._draw_calls((self.message or message).calls)

    async def _draw_thoughts(self, reasoning: str, tokens: int) -> None:
        if (reasoning or tokens) and self._thoughts is None:
            self._thoughts = Reasoning(reasoning, tokens, self._unfolded)
            await self.mount(self._thoughts, before=0 if self.children else None)
        elif self._thoughts is not None:
            self._thoughts.grow(reasoning, tokens)

    async def _draw(self, summary: str, text: str, *, growing: bool) -> None:
        if holds(text, summary):
            summary = ""
        if summary and self._summary is None:
            self._summary = markdown(summary, parsed=False, classes="summary")
            await self.mount(self._summary, before=self._body or self._facts_line)
        elif self._summary is not None:
            self._summary.display = bool(summary)
            await self._summary.show(summary, growing=growing)
        if text and self._body is None:
            self._body = markdown(text, growing=growing)
            await self.mount(self._body, before=self._facts_line)
        elif self._body is not None:
            self._body.display = bool(text)
            await self._body.show(text, growing=growing)


class Reasoning(GuardedText):
    """The thinking before an answer: one line with its tokens, below it the text if that is asked for and known."""

    def __init__(self, text: str, tokens: int, unfolded: bool) -> None:
        """`tokens` are those that the provider counted, 0 if it has not: then they are estimated."""
        super().__init__(classes="reasoning", markup=False)
        self._text = text
        self._tokens = tokens
        self._unfolded = unfolded

    def on_mount(self) -> None:
        self.unfold(self._unfolded)

    def on_click(self) -> None:
        self.unfold(not self._unfolded)

    def unfold(self, unfolded: bool) -> None:
        self._unfolded = unfolded
        self._draw()

    def grow(self, text: str, tokens: int) -> None:
        if (text, tokens) != (self._text, self._tokens):
            self._text, self._tokens = text, tokens
            self._draw()

    def _draw(self) -> None:
        words = f"thinking {self._count()} tokens"
        if not self._text:
            shown = f"  {words}"
        else:
            shown = f"▾ {words}\n{_newest(self._text)}" if self._unfolded else f"▸ {words}"
        self.update(or_broken(lambda: plain(shown)))

    def _count(self) -> str:
        return f"{self._tokens:,}" if self._tokens else f"~{estimated_tokens(len(self._text)):,}"


class CallLine(FoldLine):
    """Calls of tools in one line: what, how long, how much; what came of each, once it is asked for."""

    def __init__(self, uses: Sequence[ToolUse]) -> None:
        super().__init__()
        self._uses = tuple(uses)

    def show(self, uses: Sequence[ToolUse]) -> None:
        if tuple(uses) != self._uses:
            self._uses = tuple(uses)
            self._draw()

    def _content(self) -> Content:
        fold = ("▾ " if self._unfolded else "▸ ", "$muted")
        uses = self._uses
        if len(uses) == 1:
            lines = [parts(fold, *_use(uses[0]))]
        else:
            counts = Counter(use.name for use in uses)
            what = ", ".join(f"{name} {count}" for name, count in counts.items())
            seconds = f"{sum(use.seconds for use in uses):.1f} s"
            failed = sum(not use.ok for use in uses)
            mark = ("✗ ", "$error") if failed else ("✓ ", "$success")
            count = f"{len(uses)} calls, {failed} failed  " if failed else f"{len(uses)} calls  "
            lines = [parts(fold, mark, count, (f"{what} · {seconds}", "$muted"))]
        if self._unfolded:
            for use in uses:
                lines += [parts("  ", *_use(use))] if len(uses) > 1 else []
                shown = use.details if len(uses) <= MOST_DETAILS else ""
                lines += [plain(shown.rstrip("\n"))] if shown else []
        return Content("\n").join(lines)


def _use(use: ToolUse) -> list[str | tuple[str, str]]:
    mark = ("✓ ", "$success") if use.ok else ("✗ ", "$error")
    facts = [f"{use.seconds:.1f} s", use.amount]
    return [mark, f"{use.name} {use.shown}  ", (" · ".join(fact for fact in facts if fact), "$muted")]


def grouped(uses: Sequence[ToolUse]) -> list[list[ToolUse]]:
    """Each call alone, but a long run of reads that went well together, and all but the newest of very many."""
    groups: list[list[ToolUse]] = []
    for use in uses:
        reads = use.ok and use.name in READS
        if groups and reads and all(one.ok and one.name in READS for one in groups[-1]):
            groups[-1].append(use)
        else:
            groups.append([use])
    lines = [
        part for group in groups for part in ([group] if len(group) >= LONG_RUN else [[one] for one in group])
    ]
    if len(lines) <= MOST_LINES:
        return lines
    return [[use for line in lines[:-NEWEST] for use in line], *lines[-NEWEST:]]


def facts_of(message: ChatMessage, review: ReviewSlice) -> str:
    """`2 files · 3 hunks · 1 todo · 2 applied`: what came with a message and what became of it, in words."""
    changes = [change for name in message.changes if (change := review.change(name))]
    changes = [change for change in changes if not change.reason.startswith("replaced by ")] or changes[-1:]
    counts = [
        _count(len(changes), "file"),
        _count(sum(len(change.hunks) for change in changes), "hunk"),
        _count(message.todos, "todo"),
        "cut off" if message.cut else "",
    ]
    return " · ".join(count for count in (*counts, *_decided(changes)) if count)


def _decided(changes: Sequence[Change]) -> Iterable[str]:
    """`2 applied`, `1 pending`: the states of the changes, once one of them is decided or failed."""
    states = Counter("pending" if change.is_open else change.state for change in changes)
    if states.keys() - {"pending"}:
        yield from (f"{number} {state}" for state, number in states.items())


def markdown(text: str, *, parsed: bool = True, growing: bool = False, classes: str = "") -> MessageText:
    """A widget for a long text or one in Markdown, imported when it is first needed."""
    from tui_agent.ui.markdown.message_text import MessageText

    return MessageText(text, parsed=parsed, growing=growing, classes=classes)


def _agent_text(summary: str, text: str) -> Iterable[Widget]:
    if summary:
        yield _words(summary, "summary")
    if text:
        yield markdown(text) if _MARKDOWN.search(text) else _short(text)


def _words(text: str, classes: str) -> Widget:
    """Plain words: what is short is one piece, what is long is drawn in steps."""
    if len(text) <= SHORT:
        return _short(text, classes)
    return markdown(text, parsed=False, classes=classes)


def _short(text: str, classes: str = "") -> Static:
    return GuardedText(or_broken(lambda: plain(text)), classes=classes, markup=False)


def _line_of(facts: str) -> Static:
    return GuardedText(or_broken(lambda: label(facts)), classes="facts", markup=False)


def _count(number: int, noun: str) -> str:
    return "" if not number else f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _newest(text: str) -> str:
    return text if len(text) <= SHOWN else f"… {text[-SHOWN:]}"

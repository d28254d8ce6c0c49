"""Messages of the transcript, also while they stream, and their copyable parts."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.timer import Timer
from textual.widget import MountError, Widget
from textual.widgets import Static

from tui_agent.context.blocks import holds
from tui_agent.store.conversation import estimated_tokens
from tui_agent.store.state import ChatMessage, PlanSlice, ReplySlice, ReviewSlice, ToolUse
from tui_agent.ui.graph.facts import clock, dollars, short_count
from tui_agent.ui.safe_text import label, parts, plain
from tui_agent.ui.textual_patches.grown_widgets import GrowsAtEnd
from tui_agent.ui.widgets.command_output import CommandOutput, FoldLine, PlaceLink
from tui_agent.ui.widgets.error_guard import GuardedText, or_broken

if TYPE_CHECKING:
    from tui_agent.ui.markdown.message_text import MessageText
    from tui_agent.ui.panes.plan import PlanBlock

#: Duration from which a call or turn shows it.
SECONDS_FROM = 1.0
#: Seconds between redraws of a streaming response.
STREAM_INTERVAL = 0.1
#: Minimum pause as a multiple of the last redraw, to leave time for input.
REST = 3
SHORT = 2_000
#: Last characters shown of reasoning and of a streaming summary.
SHOWN = 8_000
#: Maximum check failures listed below the check.
MOST_LINKS = 5
#: Consecutive reads merged into one line.
LONG_RUN = 3
#: Above `MOST_LINES` call lines, only the `NEWEST` are shown.
MOST_LINES, NEWEST = 8, 4
#: Maximum calls per line with listed results.
MOST_DETAILS = 20
READS = frozenset({"read_files", "list_directory", "search_text", "find_files"})
#: Maximum file names of a folded call; of more, only their number.
MOST_NAMES = 3


class CallWords(NamedTuple):
    """Done, running, and the calls in a count. `counts` is the noun of many subjects."""

    done: str
    doing: str
    calls: str
    counts: str = ""


WORDS = {
    "read_files": CallWords("read", "reading", "reads", counts="files"),
    "list_directory": CallWords("listed", "listing", "listings"),
    "search_text": CallWords("searched for", "searching for", "searches"),
    "find_files": CallWords("looked for", "looking for", "file searches"),
    "propose_changes": CallWords("changed", "changing", "proposals", counts="files"),
    "run_command": CallWords("ran", "running", "commands"),
    "set_todos": CallWords("noted", "noting todos", "todo lists"),
    "suggest_next": CallWords("suggested", "suggesting next steps", "suggestions"),
    "spawn_subtasks": CallWords("proposed", "proposing sub-tasks", "sub-task lists", counts="sub-tasks"),
    "fetch_page": CallWords("fetched", "fetching", "pages"),
    "use_skill": CallWords("used the skill", "reading the skill", "skills"),
}
#: For display without colour.
_SPEAKERS = {"person": "You:", "agent": "The model:"}
#: Text other than a plain one-line paragraph.
_MARKDOWN = re.compile(r"[*_`#\[\]|<>~&\\\n]|^\s|^([-+=]|\d+[.)])|  |.{2000}")


class MessageBlock(Vertical, GrowsAtEnd):
    def __init__(self, message: ChatMessage | None = None, facts: str = "", unfolded: bool = False) -> None:
        """`message` is `None` for a streaming response."""
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
        self._planned = PlanSlice()
        self._ready = False
        #: Blocks near the viewport are measured first when widths change.
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
            if (check := message.check) is not None:
                links = zip_longest(check.places[:MOST_LINKS], check.said[:MOST_LINKS], fillvalue="")
                yield from (PlaceLink(place, said) for place, said in links if place)
                if check.state == "failed" and check.old:
                    yield _line_of(f"    = {check.old} failed before, too")
            return
        if message.reasoning or message.thinking:
            self._thoughts = Reasoning(message.reasoning, message.thinking, self._unfolded)
            yield self._thoughts
        if message.kind == "agent" or message.summary:
            if message.headline:
                yield _words(message.headline, "summary")
            if text := message.text:
                yield markdown(text) if _MARKDOWN.search(text) else _short(text)
        else:
            yield _words(message.text, "words")
        yield from (CallLine(uses) for uses in grouped(message.calls))
        if self.facts:
            self._facts_line = _line_of(self.facts)
            yield self._facts_line

    def show_calls(self, message: ChatMessage) -> None:
        before = self.message
        if before is not None and message.command != before.command:
            self.message = message
            self.refresh(recompose=True)
            return
        if before is None or (message.calls == before.calls and message.reasoning == before.reasoning):
            return
        self.message = message
        if self._ready:
            self._draw_calls(message.calls)
            if message.reasoning != before.reasoning:
                self.run_worker(self._draw_thoughts(message.reasoning, message.thinking), exit_on_error=False)

    def on_mount(self) -> None:
        # Calls, an outcome and a plan can arrive before the block is composed, with no update after it.
        self._ready = True
        if self.message is not None:
            self._draw_calls(self.message.calls)
        if self.facts and self._facts_line is None:
            self._facts_line = _line_of(self.facts)
            self.mount(self._facts_line)
        self.show_plan(self._planned)

    def _draw_calls(self, calls: Sequence[ToolUse]) -> None:
        there, groups = list(self.query(CallLine)), grouped(calls)
        for line, uses in zip(there, groups, strict=False):
            line.show(uses)
        for uses in groups[len(there) :]:
            self.mount(CallLine(uses), before=self._facts_line)
        for line in there[len(groups) :]:
            line.remove()

    def fold_line(self, at: int) -> FoldLine | None:
        lines = list(self.query(FoldLine))
        return lines[at] if 0 <= at < len(lines) else None

    def show_facts(self, facts: str) -> None:
        if facts == self.facts:
            return
        self.facts = facts
        if self._facts_line is not None:
            self._facts_line.update(label(facts))
            self._facts_line.display = bool(facts)
        elif self._ready:
            self._facts_line = _line_of(facts)
            self.mount(self._facts_line)

    def select_code(self, code: str) -> Region | None:
        for text in self.query("MessageText"):
            if (region := cast("MessageText", text).select_code(code)) is not None:
                return region.translate(self.virtual_region.offset + text.virtual_region.offset)
        return None

    def show_plan(self, plan: PlanSlice) -> None:
        self._planned = plan
        if self._plan is None and plan.actions and self._ready:
            from tui_agent.ui.panes.plan import PlanBlock

            self._plan = PlanBlock()
            self.mount(self._plan)
        if self._plan is not None:
            self._plan.show(plan)

    def grow(self, reply: ReplySlice) -> None:
        self._reply = reply
        if self._due is None:
            self._due = self.set_timer(max(STREAM_INTERVAL, REST * self._took), self._draw_reply)

    async def _draw_reply(self) -> None:
        begun, reply = time.monotonic(), self._reply
        try:
            await self._draw(reply.reasoning, 0, reply.summary, reply.message, growing=True)
        except MountError:
            return  # the response was withdrawn
        self._took, self._due = time.monotonic() - begun, None
        if self._reply is not reply and self.message is None:
            self.grow(self._reply)

    def finish(self, message: ChatMessage, facts: str) -> None:
        self.message = message
        if self._due is not None:
            self._due.stop()
        end = self._draw(message.reasoning, message.thinking, message.summary, message.text, growing=False)
        self.run_worker(end, exit_on_error=False)
        self.show_facts(facts)

    async def _draw_thoughts(self, reasoning: str, tokens: int) -> None:
        if (reasoning or tokens) and self._thoughts is None:
            self._thoughts = Reasoning(reasoning, tokens, self._unfolded)
            await self.mount(self._thoughts, before=0 if self.children else None)
        elif self._thoughts is not None:
            self._thoughts.grow(reasoning, tokens)

    async def _draw(self, reasoning: str, tokens: int, summary: str, text: str, *, growing: bool) -> None:
        await self._draw_thoughts(reasoning, tokens)
        if holds(text, summary):
            summary = ""
        if summary and self._summary is None:
            self._summary = markdown(summary, parsed=False, classes="summary")
            await self.mount(self._summary, before=self._body or self._behind)
        elif self._summary is not None:
            self._summary.display = bool(summary)
            await self._summary.show(summary, growing=growing)
        if text and self._body is None:
            self._body = markdown(text, growing=growing)
            await self.mount(self._body, before=self._behind)
        elif self._body is not None:
            self._body.display = bool(text)
            await self._body.show(text, growing=growing)
        if not growing and self.message is not None:
            self._draw_calls(self.message.calls)

    @property
    def _behind(self) -> Widget | None:
        """Calls are drawn first if they end while the text waits for its turn, or for the mount of another part."""
        return next(iter(self.query(CallLine)), self._facts_line)


class Reasoning(GuardedText):
    def __init__(self, text: str, tokens: int, unfolded: bool) -> None:
        """`tokens` as counted by the provider; 0 means estimate."""
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
        count = f"{self._tokens:,}" if self._tokens else f"~{estimated_tokens(len(self._text)):,}"
        words = f"thinking {count} tokens"
        if not self._text:
            shown = f"  {words}"
        else:
            newest = self._text if len(self._text) <= SHOWN else f"… {self._text[-SHOWN:]}"
            shown = f"▾ {words}\n{newest}" if self._unfolded else f"▸ {words}"
        self.update(or_broken(lambda: plain(shown)))


class CallLine(FoldLine):
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
            named = ((WORDS[name].calls if name in WORDS else name, count) for name, count in counts.items())
            what = ", ".join(f"{count} {name}" for name, count in named)
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
    seconds = f"{use.seconds:.1f} s" if use.seconds >= SECONDS_FROM else ""
    what = call_words(use)
    told = (use.ok and use.name == "propose_changes") or what.endswith(f" {use.amount}")
    amount = "" if told else use.amount
    facts = " · ".join(fact for fact in (amount, seconds) if fact)
    return [mark, what, (f"  {facts}" if facts else "", "$muted")]


def call_words(use: ToolUse) -> str:
    """Returns words such as `changed 12 files +119 −59`, `searched for timeout`, `noted 2 todos`."""
    words = WORDS.get(use.name)
    if words is None:
        return f"{use.name} {use.shown}".strip()
    names = [name for name in use.shown.split(", ") if name]
    if use.name == "propose_changes" and use.ok:
        files, _, lines = use.amount.partition(", ")
        return f"{words.done} {names[0] if len(names) == 1 else files} {lines}".rstrip()
    if words.counts and len(names) > MOST_NAMES:
        return f"{words.done} {len(names)} {words.counts}"
    return f"{words.done} {use.shown or use.amount}".rstrip()


def grouped(uses: Sequence[ToolUse]) -> list[list[ToolUse]]:
    """Groups long runs of successful reads, and all but the newest of many calls. Omits suggested steps,
    which are above the prompt.
    """
    groups: list[list[ToolUse]] = []
    for use in uses:
        if use.ok and use.name == "suggest_next":
            continue
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
    """Returns words such as `2 files · 1 todo · 2 applied · 12 s · 14k tokens · $0.02`: contents and
    outcome, and the cost at the end of a turn. Omits counts that a call shows.
    """
    changes = [change for name in message.changes if (change := review.change(name))]
    changes = [change for change in changes if not change.reason.startswith("replaced by ")] or changes[-1:]
    shown = {use.name for use in message.calls}
    counts = [
        _count(len(changes), "file") if "propose_changes" not in shown else "",
        _count(message.todos, "todo") if "set_todos" not in shown else "",
        "cut off" if message.cut else "",
    ]
    states = Counter(
        "pending"
        if change.is_open
        else "replaced"
        if change.reason.startswith("replaced by ")
        else change.state
        for change in changes
    )
    if states.keys() - {"pending"}:
        counts += [
            _count(number, state) if state == "conflict" else f"{number} {state}"
            for state, number in states.items()
        ]
    if (spent := message.spent) is not None:
        tokens = f"{short_count(spent.tokens)} tokens" if spent.tokens else ""
        seconds = f"{spent.seconds:.0f} s" if spent.seconds < 60 else clock(spent.seconds)
        counts += [seconds if spent.seconds >= SECONDS_FROM else "", tokens, dollars(spent.cost)]
    return " · ".join(count for count in counts if count)


def markdown(text: str, *, parsed: bool = True, growing: bool = False, classes: str = "") -> MessageText:
    from tui_agent.ui.markdown.message_text import MessageText

    return MessageText(text, parsed=parsed, growing=growing, classes=classes)


def _words(text: str, classes: str) -> Widget:
    if len(text) <= SHORT:
        return _short(text, classes)
    return markdown(text, parsed=False, classes=classes)


def _short(text: str, classes: str = "") -> Static:
    return GuardedText(or_broken(lambda: plain(text)), classes=classes, markup=False)


def _line_of(facts: str) -> Static:
    return GuardedText(or_broken(lambda: label(facts)), classes="facts", markup=False)


def _count(number: int, noun: str) -> str:
    return "" if not number else f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_FENCE = re.compile(
    r"^[ ]{0,3}(`{3,}|~{3,})[ ]*([^\s`]*)[^\n]*\n(.*?)^[ ]{0,3}\1[`~]*[ ]*$", re.MULTILINE | re.DOTALL
)
_ENDINGS = {
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "rust": "rs",
    "bash": "sh",
    "markdown": "md",
}


class TextBlock(NamedTuple):
    """`ending` is the file extension of such a text; `line` the index of the message's expandable line, or
    -1.
    """

    message: int
    text: str
    words: str
    ending: str = "md"
    code: bool = False
    line: int = -1


def blocks_of(message: ChatMessage) -> list[TextBlock]:
    if message.command is not None:
        command = message.command
        text = command.output or command.command
        return [TextBlock(message.number, text, f"output of {command.command}", "txt", line=0)]
    calls = (
        TextBlock(
            message.number,
            "\n".join(use.details or call_words(use) for use in uses),
            call_words(uses[0]) if len(uses) == 1 else f"{len(uses)} calls",
            "txt",
            line=at,
        )
        for at, uses in enumerate(grouped(message.calls))
    )
    text = "\n\n".join(part for part in (message.headline, message.text) if part)
    if not text.strip():
        return [*calls]
    who = "your message" if message.kind == "person" else "the message"
    found = [TextBlock(message.number, text, who)]
    for fence in _FENCE.finditer(text):
        language, code = fence[2].strip().lower(), fence[3]
        lines = code.count("\n")
        words = f"{language or 'code'}, {lines} line{'s' * (lines != 1)}"
        ending = _ENDINGS.get(language, language or "txt")
        found.append(TextBlock(message.number, code, words, ending, code=True))
    return [*found, *calls]

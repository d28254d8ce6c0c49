"""A session as one web page: chat, plans, diffs, checks and the graph of sub-tasks.

A content security policy forbids scripts and loading, so pictures in messages become links. All texts are
masked before they become HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from tui_agent.edits.change import Change, diff_of, text_under, unified
from tui_agent.errors import FileError
from tui_agent.files.blobs import Blobs
from tui_agent.files.masking import masked
from tui_agent.files.secret_values import SecretValues
from tui_agent.files.sensitive_paths import is_secret
from tui_agent.files.text import clean, one_line
from tui_agent.log.snapshot import in_order
from tui_agent.log.transfer import secret_paths
from tui_agent.store.commands import MARKS
from tui_agent.store.events import Event
from tui_agent.store.graph import SubTask, layers
from tui_agent.store.state import ActionSlice, ChatMessage, State

_LONGEST = 200_000
_MARKS: Mapping[str, str] = {
    "loaded": "✓",
    "completed": "✓",
    "create": "+",
    "skipped": "○",
    "running": "●",
    "cancelled": "■",
    "failed": "✗",
}
#: Size of a node, and its distance from the next, in pixels.
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 230, 58, 60, 18

_STYLE = """
:root { color-scheme: light dark; --text: #20242b; --muted: #5b6370; --ground: #fff; --raised: #f3f4f6; --line: #d5d9e0;
  --accent: #1f6aa5; --added: #dff3e3; --removed: #fae1e3; --good: #1d7a3a; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #d3d7de; --muted: #9299a6; --ground: #14161b; --raised: #1f232a;
  --line: #3a404a; --accent: #7fb4e0; --added: #1b3a26; --removed: #44222a; --good: #8ccf9a; --bad: #e6767f; } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; background: var(--ground); color: var(--text);
  font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 0 0 .4rem; color: var(--muted); font-weight: 600; }
article { border-left: 3px solid var(--line); padding: .2rem 0 .2rem 1rem; margin: 1.4rem 0; }
article.person { border-color: var(--accent); } .facts { color: var(--muted); font-size: .85rem; }
pre { background: var(--raised); padding: .7rem; overflow-x: auto; font: 13px/1.45 ui-monospace, monospace; }
code { font-family: ui-monospace, monospace; font-size: .9em; } pre code { font-size: 1em; }
table { border-collapse: collapse; } th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }
details { margin: .5rem 0; } summary { cursor: pointer; } .diff span { display: block; min-height: 1.45em; }
.add { background: var(--added); } .del { background: var(--removed); } .at { color: var(--muted); }
.good { color: var(--good); } .bad { color: var(--bad); } svg { max-width: 100%; height: auto; }
svg text { fill: var(--text); font: 13px system-ui, sans-serif; } svg rect { fill: var(--raised); stroke: var(--line); }
svg path { fill: none; stroke: var(--muted); }
"""
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width">
"""


def as_web_page(session: str, events: Sequence[Event], blobs: Blobs, secrets: SecretValues) -> str:
    state, plans = State(), {}
    for event in events:
        state = event.apply(state)
        if state.plan.turn:
            plans[state.plan.turn] = state.plan
    page = _Page(state, blobs, secret_paths(events), lambda text: clean(masked(secrets.masked(text)[0])))
    title = page.words(state.session.name or f"Session {session}")
    parts = [f"{_HEAD}<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>"]
    cost = state.usage.session.cost
    figures = [
        f"{state.turn.number} turns",
        state.model.name,
        f"${cost:.2f}" if cost else "",
    ]
    parts.append(f'<p class="facts">{page.words(" · ".join(filter(None, figures)))}</p>')
    shown: set[str] = set()
    for message in in_order(events):
        shown.update(message.changes)
        if message.kind == "agent" and (plan := plans.pop(message.turn, None)):
            parts.append(page.plan(plan.actions))
        parts.append(page.message(message))
    # Those of agents and sub-tasks belong to no message.
    parts += [page.change(change) for change in state.review.changes if change.id not in shown]
    parts += [page.graph(state.subtasks.tasks), page.todos()]
    return "\n".join([*filter(None, parts), "</body>\n</html>\n"])


class _Page:
    def __init__(self, state: State, blobs: Blobs, hidden: set[str], mask: Callable[[str], str]) -> None:
        from markdown_it import MarkdownIt  # An import of 30 ms.

        self._state, self._blobs, self._hidden, self._mask = state, blobs, hidden, mask
        self._markdown = MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")
        self._markdown.disable("image")

    def words(self, text: str) -> str:
        return escape(one_line(self._mask(text)))

    def message(self, message: ChatMessage) -> str:
        if message.command:
            ran = message.command
            look, mark = ("good", MARKS["passed"]) if ran.ok else ("bad", MARKS["failed"])
            text = self._mask(ran.printed)
            left = len(text) - _LONGEST
            text = escape(text[:_LONGEST]) + (f"\n… {left:,} more characters" if left > 0 else "")
            ending = f'<p class="{look}">{mark} {self.words(ran.ending)}, {ran.seconds:.1f} s</p>'
            body = f"{ending}<pre><code>{text}</code></pre>"
            return self._article(message, body)
        parts = [f"<p><strong>{self.words(message.headline)}</strong></p>" if message.headline else ""]
        if message.reasoning:
            parts.append(self._folded("Thinking", self._markdown.render(self._mask(message.reasoning))))
        parts.append(self._markdown.render(self._mask(message.text)))
        for call in message.calls:
            mark = '<span class="good">✓</span>' if call.ok else '<span class="bad">✗</span>'
            shown = self.words(f"{call.name} {call.shown}")
            parts.append(f'<p class="facts">{mark} {shown} · {call.seconds:.1f} s</p>')
        if message.cut:
            parts.append(f'<p class="bad">Cut off{self.words(": " + message.why) if message.why else ""}</p>')
        changes = [change for name in message.changes if (change := self._state.review.change(name))]
        parts += [self.change(change) for change in changes]
        return self._article(message, "".join(parts))

    def plan(self, actions: Sequence[ActionSlice]) -> str:
        rows = "".join(
            f"<li>{_MARKS.get(one.state, '·')} {self.words(one.action.name)}"
            f' <span class="facts">{self.words(", ".join(one.loaded) or one.state)}</span></li>'
            for one in actions
        )
        return self._folded(f"Plan: {len(actions)} files", f"<ul>{rows}</ul>") if rows else ""

    def todos(self) -> str:
        rows = "".join(
            f"<li>{'✓' if todo.done else '○'} {self.words(todo.text)}</li>" for todo in self._state.todos
        )
        return f"<h2>Todos</h2><ul>{rows}</ul>" if rows else ""

    def graph(self, tasks: Sequence[SubTask]) -> str:
        if not tasks:
            return ""
        places = {
            task.id: (number * (_WIDTH + _ACROSS), row * (_HEIGHT + _DOWN))
            for number, layer in enumerate(layers(tasks))
            for row, task in enumerate(layer)
        }
        width = max(x for x, _ in places.values()) + _WIDTH + 2
        height = max(y for _, y in places.values()) + _HEIGHT + 2
        drawn = []
        for task in tasks:
            x, y = places[task.id]
            for name in task.dependencies:
                if name in places:
                    left, top = places[name][0] + _WIDTH, places[name][1] + _HEIGHT // 2
                    bend, end = (left + x) // 2, y + _HEIGHT // 2
                    drawn.append(f'<path d="M{left} {top} C{bend} {top} {bend} {end} {x} {end}"/>')
        drawn += [self._node(task, *places[task.id]) for task in tasks]
        box = f'viewBox="-1 -1 {width} {height}" width="{width}" height="{height}"'
        return f'<h2>Sub-tasks</h2><svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(drawn)}</svg>'

    def _node(self, task: SubTask, x: int, y: int) -> str:
        look = "bad" if task.state == "failed" else "good" if task.state == "completed" else ""
        goal = self._mask(task.goal)
        lines = (f"{_MARKS.get(task.state, '·')} {task.id}", goal if len(goal) <= 34 else f"{goal[:33]}…")
        texts = "".join(
            f'<text x="{x + 10}" y="{y + 23 + 21 * row}">{self.words(line)}</text>'
            for row, line in enumerate(lines)
        )
        tip = self.words(f"{task.id}: {goal} ({task.state}) {task.summary or task.reason}")
        box = f'<rect class="{look}" x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
        return f"<g><title>{tip}</title>{box}{texts}</g>"

    def _article(self, message: ChatMessage, body: str) -> str:
        heading = f"<h2>{self.words(message.title)} · turn {message.turn}</h2>"
        return f'<article class="{message.kind}">{heading}{body}</article>'

    @staticmethod
    def _folded(title: str, body: str) -> str:
        return f"<details><summary>{escape(title)}</summary>{body}</details>"

    def change(self, change: Change) -> str:
        title = f"{change.path} +{change.added} −{change.removed} · {change.state}"
        if change.rename_to:
            title = f"{change.path} → {change.rename_to} · {change.state}"
        title = self._mask(one_line(title))
        if self._hidden & {change.path, change.rename_to} or any(
            map(is_secret, (change.path, change.rename_to))
        ):
            return f"<p>{escape(title)} <em>(content omitted: the file looks secret)</em></p>"
        try:
            base, new = (text_under(self._blobs, key) or "" for key in (change.base, change.new))
        except (FileError, ValueError):
            return f"<p>{escape(title)} <em>(the text was deleted)</em></p>"
        # Masked first, so that no value spans lines of the diff.
        lines = unified(diff_of("", self._mask(base), self._mask(new)))[:_LONGEST].split("\n")[2:]
        looks = {"+": "add", "-": "del", "@": "at"}
        rows = "".join(
            f'<span class="{looks.get(line[:1], "")}">{escape(line)}</span>' for line in lines if line
        )
        reason = f'<p class="facts">{self.words(change.reason)}</p>' if change.reason else ""
        return self._folded(title, f'{reason}<pre class="diff">{rows}</pre>')

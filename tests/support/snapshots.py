"""Pictures of the screen as tests: SVG files of text and style, compared line by line.

`make snapshots` writes them all. They are of one real session of the rehearsal, at three sizes and in three depths of
colour; what is another each time (times, durations, hashes of commits) is left out.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import support.idle  # noqa: F401 (what the pilot waits with)
from rich.style import Style
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input, TextArea

if TYPE_CHECKING:
    from tui_agent.ui.app import WorkspaceApp
    from tui_agent.ui.themes import Depth
    from tui_agent.ui.widgets.transcript import Transcript

FOLDER = Path(__file__).parents[1] / "snapshots"
#: Size of a cell in the picture.
_WIDTH, _HEIGHT = 8.4, 19
_TSPAN = re.compile(r'<tspan x="([\d.]+)" class="(\w+)">([^<]*)</tspan>')
_TEXT = re.compile(r"<text y=\"(\d+)\">(.*?)</text>", re.S)
_CLASS = re.compile(r"^\.(\w+) \{ (.*) \}$", re.M)
#: Times, seconds and versions, which are others each time: as many cells of the same.
_CHANGING = (
    re.compile(r"\b\d\d:\d\d:\d\d\b"),
    re.compile(r"(?<![\w.])[<~]?\d+(\.\d+)? ?ms\b"),
    re.compile(r"(?<![\w.])\d+\.\d s\b"),
    re.compile(r"(?<![\w.:])\d+s\b"),
    re.compile(r"\b[0-9a-f]{8}\b"),
)


class Span(NamedTuple):
    """Text of one style at a cell of a line."""

    x: int
    style: str
    text: str


Lines = list[list[Span]]


def lines_of(strips: Sequence[Strip]) -> Lines:
    """Each row of the screen as spans; what is blank and of the ground has none of its own."""
    return [list(_spans(strip)) for strip in strips]


def _spans(strip: Strip) -> Iterator[Span]:
    text = "".join(segment.text for segment in strip)
    for pattern in _CHANGING:
        text = pattern.sub(lambda found: "#" * len(found[0]), text)
    x = at = 0
    for segment in strip.simplify():
        shown = text[at : at + len(segment.text)]
        at += len(segment.text)
        yield Span(x, _style(segment.style), shown)
        x += segment.cell_length


def _style(style: Style | None) -> str:
    """As CSS says it."""
    style = style or Style.null()
    front, back = style.color, style.bgcolor
    if style.reverse:
        front, back = back, front
    found = [
        f"fill: {front.get_truecolor().hex}" if front else "",
        f"background: {back.get_truecolor(foreground=False).hex}" if back else "",
        "font-weight: bold" if style.bold else "",
        "font-style: italic" if style.italic else "",
        "opacity: 0.6" if style.dim else "",
        " ".join(
            ("text-decoration: underline" if style.underline else "", "line-through" if style.strike else "")
        ).strip(),
    ]
    return "; ".join(part for part in found if part)


def svg(lines: Lines, width: int) -> str:
    """The picture: a rectangle for each ground, a text for each line, a span for each style."""
    names = {
        style: f"s{at}" for at, style in enumerate(sorted({span.style for line in lines for span in line}))
    }
    size = f'width="{width * _WIDTH:.0f}" height="{len(lines) * _HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        "<style>",
        "text { font: 14px monospace; white-space: pre; }",
        *(f".{name} {{ {style} }}" for style, name in names.items()),
        "</style>",
    ]
    for y, line in enumerate(lines):
        parts += [
            f'<rect x="{span.x * _WIDTH:.1f}" y="{y * _HEIGHT}" width="{len(span.text) * _WIDTH:.1f}" '
            f'height="{_HEIGHT}" fill="{ground[1]}"/>'
            for span in line
            if (ground := re.search(r"background: (#\w+)", span.style))
        ]
        spans = (
            f'<tspan x="{span.x * _WIDTH:.1f}" class="{names[span.style]}">{escape(span.text)}</tspan>'
            for span in line
        )
        parts.append(f'<text y="{y * _HEIGHT + 14}">{"".join(spans)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def read(picture: str) -> Lines:
    """The lines of a picture as it was kept."""
    styles = dict(_CLASS.findall(picture))
    return [
        [
            Span(round(float(x) / _WIDTH), styles[name], unescape(text))
            for x, name, text in _TSPAN.findall(line)
        ]
        for _, line in _TEXT.findall(picture)
    ]


def differences(before: Lines, now: Lines) -> list[str]:
    """Each line that differs: as it was kept, and as it is; a style is told only where the text is the same."""
    found = []
    for number in range(max(len(before), len(now))):
        old, new = (lines[number] if number < len(lines) else [] for lines in (before, now))
        if old == new:
            continue
        texts = ["".join(span.text for span in line).rstrip() for line in (old, new)]
        if texts[0] == texts[1]:
            texts = [
                " | ".join(f"{span.text.strip()!r} {span.style}" for span in line) for line in (old, new)
            ]
        found += [f"line {number + 1}", f"  kept {texts[0]}", f"  now  {texts[1]}"]
    return found


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────

SIZES = ((80, 24), (100, 30), (160, 48))
DEPTHS: tuple[Depth, ...] = ("colors", "colors-256", "colors-16")
_NAMES = {"colors": "true", "colors-256": "256", "colors-16": "16"}
#: A check of no file, so that none are offered.
NO_CHECKS = 'checks.commands=[{"name": "none", "command": "true", "files": ["none"]}]'
#: A picture is taken when it was the same so many times, so many seconds apart.
_SAME, _APART, _AT_MOST = 3, 0.06, 60


class Picture(NamedTuple):
    lines: Lines
    width: int


@contextmanager
def without_durations() -> Generator[None]:
    """Durations of calls and turns are shown from a second on, so with load on the machine."""
    from tui_agent.ui.widgets import messages

    with patch.object(messages, "SECONDS_FROM", float("inf")):
        yield


async def pictures(folder: Path) -> dict[str, Picture]:
    """All pictures by name: the first screen, the whole in each size and depth, each pane alone in one of them."""
    with without_durations():
        return await _pictures(folder)


async def _pictures(folder: Path) -> dict[str, Picture]:
    from support.rehearsal_scenes import SUB_TASKS_REQUEST

    from tui_agent.rehearsal import FIRST_REQUEST, copy_project, recording
    from tui_agent.session.opening import Opening, open_session
    from tui_agent.session.session import Session
    from tui_agent.ui.app import WorkspaceApp
    from tui_agent.ui.panes import PANES
    from tui_agent.ui.widgets.transcript import Transcript

    project = copy_project(folder / "bookshop")

    async def opened() -> Session:
        return await open_session(
            Opening(
                project,
                replay=recording(),
                rehearsal=True,
                interactive=True,
                draft=FIRST_REQUEST,
                overrides=(NO_CHECKS,),
            )
        )

    found: dict[str, Picture] = {}
    app = WorkspaceApp(opened)
    async with app.run_test(size=SIZES[0]) as pilot:

        async def take(name: str, at: int) -> None:
            width, height = SIZES[at]
            if app.size != SIZES[at]:
                await pilot.resize_terminal(width, height)
            transcript.follow()
            found[f"{name}-{width}x{height}-{_NAMES[depth]}"] = Picture(
                await _settled(app, pilot, transcript), width
            )

        while not app.workspace_screen.ready or app.session is None:
            await pilot.pause(0.02)
        session = app.session
        await session.files.ready()
        while not session.state.workspace.branch:
            await pilot.pause(0.02)
        depth = DEPTHS[0]
        transcript = app.workspace_screen.query_one(Transcript)
        transcript.styles.scrollbar_size_vertical = 0  # its length is an estimate until all was seen
        await take("first", 0)
        await pilot.press("enter")
        await pilot.pause()
        await session.chat.finished()
        await session.chat.submit(SUB_TASKS_REQUEST)
        await session.chat.finished()
        await session.files.open("shop/clients/orders_v2.py", 20)
        for first, depth in enumerate(DEPTHS):
            app._depth = depth
            for theme in ("light", "dark"):  # one that is the same is not drawn
                app._use(theme)
            app.workspace_screen.focus_pane("chat")
            for at in range(len(SIZES)):
                await take("whole", at)
            for at, name in enumerate([*PANES][first :: len(DEPTHS)]):
                app.workspace_screen.focus_pane(name)
                await pilot.press("f9", *(["home"] if name != "chat" else []))
                await take(name, (first + at) % len(SIZES))
                await pilot.press("f9")
        await session.close()
    return found


async def _settled(app: WorkspaceApp, pilot: Pilot[int], transcript: Transcript) -> Lines:
    """What is on the screen when nothing moves there any more."""
    same, text, strips = 0, "", list[Strip]()
    for _ in range(_AT_MOST):
        for area in (*app.screen.query(Input), *app.screen.query(TextArea)):
            area.cursor_blink = False
        await pilot.pause()
        await pilot.pause(_APART)
        strips = app.screen._compositor.render_strips()
        before, text = text, "\n".join(strip.text for strip in strips)
        if transcript.scroll_y < transcript.max_scroll_y:  # a message was laid out late
            transcript.follow()
            text = ""
        same = same + 1 if text == before else 0
        if same == _SAME:
            break
    return lines_of(strips)


def kept() -> dict[str, Lines]:
    return {path.stem: read(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.svg"))}


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {
            "TUI_AGENT_HOME": home,
            "TUI_AGENT_REPLAY_SPEED": "0",
            "GIT_CONFIG_GLOBAL": f"{home}/gitconfig",
        }
        drawn = asyncio.run(pictures(Path(home)))
    for path in FOLDER.glob("*.svg"):
        path.unlink()
    for name, picture in drawn.items():
        (FOLDER / f"{name}.svg").write_text(svg(picture.lines, picture.width), encoding="utf-8", newline="\n")
    sys.stdout.write(f"{len(drawn)} pictures are in {FOLDER}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

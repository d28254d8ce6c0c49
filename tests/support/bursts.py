"""The same keys typed in bursts and typed slowly, in two programs over equal folders, and what came of it in each.

    async with two_programs(folder, size) as both:
        difference = await both.compare(burst, random)   # "" where both are in the same state

Bytes go through the program's own parser and driver, as a terminal's do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from support.repositories import git, repository
from support.screens import PATIENCE, Driven, on_screen
from support.sessions import ScriptedModel, reply
from support.terminal_answers import mixed
from textual.message import Message
from textual.widgets import Input, OptionList, TextArea, Tree

from tui_agent.errors import Unreachable
from tui_agent.session.session import Session
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.dialogs import dialog
from tui_agent.ui.dialogs.commit import CommitDialog
from tui_agent.ui.dialogs.preview import Merge
from tui_agent.ui.editor.find_bar import FindBar
from tui_agent.ui.keys import keyboard
from tui_agent.ui.panes.plan import PlanBlock
from tui_agent.ui.terminal_input import TerminalInput
from tui_agent.ui.widgets import pane
from tui_agent.ui.widgets.line_view import Rows
from tui_agent.ui.widgets.pane import Pane

ENTER, ESC, BACKSPACE, LEADER, PALETTE = "\r", "\x1b[27u", "\x7f", "\x0f", "\x10"
UP, DOWN, LEFT, RIGHT, HOME, END = (f"\x1b[{letter}" for letter in "ABDCHF")
CTRL_G, F2, F3, F4, F5 = "\x07", "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[15~"
F6, F7, F8, F9 = "\x1b[17~", "\x1b[18~", "\x1b[19~", "\x1b[20~"
ALT_ENTER, ALT_A, ALT_C = "\x1b[13;3u", "\x1b[97;3u", "\x1b[99;3u"
FIND, REPLACE, SYMBOL, LINE = "\x06", "\x1c", LEADER + "8", "\x0c"
PANES = (F3, F4, F5, F7, LEADER + "p", LEADER + "o", LEADER + "k", F6, "\t")
#: Whole sequences that people type at once, by what they are about.
PHRASES: dict[str, Sequence[str]] = {
    "text": ("add tests", "x", "10 tests fail", "fix @ap", "?", "a b", "1", "2", "naïve ü"),
    "panes": PANES,
    "review": ("a", "s", "n", "p", "]", "[", "f", "u", "v", "x", "e", "c", "t", "A", "D", "U", "H", "g", "o"),
    "leader": tuple(
        LEADER + key for key in ("u", "U", "z", "a", "t", "n", "x", "l", "h", "q", "y", "j", "?")
    ),
    "dialogs": (
        PALETTE + "go to the todos" + ENTER,
        PALETTE + "zoom",
        PALETTE,
        F3 + "/api" + ENTER,
        LEADER + "m",
        LEADER + "n",
        "\x1bOP",
    ),
    "moves": (UP, DOWN, LEFT, RIGHT, HOME, END, ENTER, ESC, ESC, BACKSPACE, "\x1b[3~"),
    "todos": (LEADER + "o" + "aone more" + ENTER, LEADER + "o" + "dd", LEADER + "o" + "J ", LEADER + "oe"),
    "editor": (
        F4 + "x = 2",
        F4 + FIND + "def",
        F4 + LINE + "2" + ENTER,
        F2,
        "\x1b[5;5~",
        "\x1b[6;5~",
        F4 + LEADER + "x",
    ),
    "lines": (*(F4 + LEADER + key for key in "1234%"), F4 + "\x1f", F4 + LEADER + "2" + UP, LEADER + "5"),
    "find": (
        F4 + FIND + "url" + ENTER,
        F4 + REPLACE + "url\turi" + ENTER,
        F4 + REPLACE + "get\tput" + ALT_ENTER,
        F4 + REPLACE + "a\tb" + ALT_A + ENTER,
        F4 + REPLACE,
        FIND,
        ALT_ENTER,
        ALT_C,
        *(LEADER + key for key in "=;*'7"),
    ),
    "symbols": (F4 + SYMBOL, F4 + SYMBOL + "f3" + ENTER, F4 + SYMBOL + DOWN + ENTER, LEADER + "8", SYMBOL),
    "merge": (
        *(LEADER + "0" + key for key in ("", "1", "2", "3", "n", "v", ENTER, "x")),
        LEADER + "0e" + "by hand" + CTRL_G,
        LEADER + "l",
        LEADER + "Y",
        LEADER + "d",
    ),
    "commit": (
        LEADER + "i",
        LEADER + "i" + "words" + CTRL_G,
        LEADER + "i\t" + DOWN + " ",
        LEADER + "i\ta" + CTRL_G,
        LEADER + "i\t\tn",
        CTRL_G,
    ),
    "transcript": (
        F7 + "see models.py" + ENTER,
        LEADER + "Z" + ENTER,
        LEADER + "L",
        LEADER + "/" + "batch" + ENTER,
        F7 + SYMBOL + ENTER,
        LEADER + "6",
    ),
    "paste": (
        "\x1b[200~pasted text\x1b[201~",
        "\x1b[200~12 more\nlines\x1b[201~",
        f"\x1b[200~{'long ' * 450}\x1b[201~",
    ),
}
#: What is typed seldom, since it takes long: a screen with other panes.
SELDOM = tuple(LEADER + "9" + behind for behind in ("", "x", F4, *(LEADER + key for key in "*;=4in9")))
FILES = {
    "api.py": "".join(f"def f{n}(url):\n    return get(url, {n})\n\n\n" for n in range(6)),
    "models.py": "class Model:\n    name = ''\n\n    def save(self):\n        pass\n",
    "notes/plan.md": "# Plan\n\nNothing yet.\n",
}


def burst(random: Random, size: tuple[int, int]) -> list[str]:
    """What is typed and clicked on a screen of that size, phrase by phrase: 2 to about 40 keys, more often few."""
    kinds = [*PHRASES, "mouse"]
    typed: list[str] = []
    keys, wanted = 0, min(40, 2 + int(random.expovariate(1 / 6)))
    while keys < wanted:
        kind = random.choice(kinds)
        if random.random() < 0.005:
            typed.append(random.choice(SELDOM))
        typed.append(_mouse(random, size) if kind == "mouse" else random.choice(PHRASES[kind]))
        keys += len(keys_of(typed[-1]))
    return typed


def click(x: int, y: int) -> str:
    """The left button pressed and let go at a cell, from 1."""
    return f"\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m"


def _mouse(random: Random, size: tuple[int, int]) -> str:
    x, y = random.randint(1, size[0]), random.randint(1, size[1])
    wheel = f"\x1b[<{random.choice((64, 65))};{x};{y}M"
    return random.choice((click(x, y), click(x, y), wheel))


def keys_of(data: str) -> list[str]:
    """The bytes of each event, for a person who types one after another."""
    found, parser, at = [], TerminalInput(), 0
    for end in range(1, len(data) + 1):
        if list(parser.feed(data[end - 1])):
            found.append(data[at:end])
            at = end
    assert at == len(data), f"not whole: {data[at:]!r}"
    return found


def reads_of(data: str, random: Random) -> list[str]:
    """The same bytes as a connection may deliver them: cut anywhere."""
    cuts = sorted(random.sample(range(1, len(data)), min(random.randint(0, 3), len(data) - 1)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


class Ready(ScriptedModel):
    """Answers every request: one that asks for changes with the same batch, any other with a word."""

    async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
        if request.purpose == "draft":  # it would come into the message before the next key, or after it
            raise Unreachable("the model drafts nothing", "write it")
        asked = str(request.messages[-1]["content"])
        # what was asked for earlier is in the memory of a "continue"
        self.replies = [_batch() if "<user_query>\npropose the batch" in asked else reply("Done.")]
        async for chunk in super().stream(request):
            yield chunk


#: Groups of workers that are doing something while they run; of these, some wait for the answer of a dialog.
WORKING_UNDER_A_DIALOG = frozenset({"ask", "fill", "preview", "change", "diff", "draft", "commit", "plain"})
WORKING = WORKING_UNDER_A_DIALOG | {"default", "give-back", "subtask", "app", "session", "changes"}


class Typist:
    """One program, and its state as far as keys can change it."""

    def __init__(self, it: Driven, workspace: Path) -> None:
        self.it = it
        self.workspace = workspace
        self.input = TerminalInput()

    def read(self, data: str) -> None:
        self._give(self.input.feed(data))

    def tick(self) -> None:
        """As if time had passed since the last read."""
        self._give(self.input.tick())

    def _give(self, found: Iterable[Message]) -> None:
        driver = self.it.app._driver
        assert driver is not None
        for event in found:
            driver.process_message(event)

    async def types(self, data: str) -> None:
        """All of it in one read, and what comes of it."""
        self.read(data)
        await self.settle()

    async def settle(self) -> None:
        """Wait until nothing happens any more: neither on the screen nor in what was asked of the session."""
        app = self.it.app
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            await asyncio.sleep(0)
            await app.keyboard._settled()
            if self._works():
                assert asyncio.get_running_loop().time() < deadline, f"never at rest: {app.workers}"
                await asyncio.sleep(0.002)
                continue
            if (bridge := self.it.screen.bridge) is not None:  # else a screen is taking the place of another
                with app._context():  # as a callback of the screen has it
                    bridge.flush()
            await app.keyboard.drawn()
            if not self._works():
                return

    def _works(self) -> bool:
        """Whether anything is being done."""
        app = self.it.app
        groups = WORKING if len(app.screen_stack) == 1 else WORKING_UNDER_A_DIALOG
        busy = any(worker.group in groups and worker.is_running for worker in app.workers)
        finds = any(bar.editor is not None and bar._stale for bar in self.it.screen.query(FindBar))
        looking = self.it.session.files._freshness._looking  # at the disk, after an edit
        looks = looking is not None and not looking.done()
        return busy or finds or looks or not app.keyboard.at_rest or self.it.session.state.turn.running

    async def propose(self) -> None:
        await self.it.session.chat.submit("propose the batch")
        await self.it.session.chat.finished()
        await self.settle()

    async def change_elsewhere(self, before: str, after: str) -> None:
        """A file that the person has changed is another on the disk."""
        session, path = self.it.session, "models.py"
        await session.files.open(path)
        buffer = session.state.buffers.get(path)
        if buffer is not None and not buffer.unsaved:
            session.files.edit(path, f"# mine\n{buffer.text}", (0, 0), (0, 0))
        file = self.workspace / path
        file.write_text(f"{before}{_text(file) or ''}{after}")
        await session._open_files.reload_changed(path)
        await self.settle()

    async def state(self) -> dict[str, object]:
        await self.it.screen.flush()
        await self.settle()
        app, state = self.it.app, self.it.session.state
        found: dict[str, object] = {
            "screens": [type(screen).__name__ for screen in app.screen_stack],
            "focus": _path(app.focused),
            "leader": self.it.screen.leader.waiting is not None,
            "theme": app.theme,
            "layout": (state.layout.focus, state.layout.hidden, state.layout.zoomed, state.layout.tabs),
            "place": state.layout.place.get("review"),
            "review": [(c.id, c.path, c.state, c.hunks, c.comments) for c in state.review.changes],
            "applies": [(point.id, point.undone) for point in state.review.checkpoints],
            "todos": [(todo.text, todo.done) for todo in state.todos],
            "queue": state.input.queue,
            "draft": state.input.draft,
            "said": [m.text for m in state.chat.messages if m.kind == "person"],
            "open": (
                state.buffers.active,
                [(b.path, b.text, b.unsaved, b.cursor) for b in state.buffers.open],
            ),
            "clashes": [b.path for b in state.buffers.open if b.clash],
            "finding": [
                (bar.display, bar._mode, sorted(bar._switched), len(bar._found.found))
                for bar in self.it.screen.query(FindBar)
            ],
            "plans": [block._drawn_open for block in self.it.screen.query(PlanBlock)],
            "plain": app.plain,
            "commits": git(self.workspace, "log", "--format=%s"),
            "files": {name: _text(self.workspace / name) for name in FILES},
        }
        for number, screen in enumerate(app.screen_stack):
            match screen:
                case CommitDialog():
                    found[f"{number} commit"] = (sorted(screen.ticked), screen._leaving)
                case Merge():
                    chosen = screen._choices
                    found[f"{number} merge"] = (
                        chosen.place,
                        sorted(chosen.chosen.items()),
                        screen._in_diff,
                        screen._hunk,
                    )
            for widget in screen.query("*"):
                name = f"{number} {_path(widget)}"
                match widget:
                    case Input():
                        found[name] = (widget.value, widget.display)
                    case TextArea():
                        found[name] = (widget.text, widget.selection)
                    case OptionList() if number:
                        found[name] = (widget.option_count, widget.highlighted)
                    case Rows():
                        found[name] = widget.cursor
                    case Tree():
                        found[name] = (widget.last_line, widget.cursor_line)
        return found


class Both:
    def __init__(self, slow: Typist, fast: Typist) -> None:
        self.slow, self.fast = slow, fast

    async def propose(self) -> None:
        await asyncio.gather(self.slow.propose(), self.fast.propose())

    async def change_elsewhere(self, random: Random) -> None:
        """At the end of the file, or where the person has changed it too."""
        around = random.choice((("", "# theirs\n"), ("# theirs\n", "")))
        await asyncio.gather(self.slow.change_elsewhere(*around), self.fast.change_elsewhere(*around))

    async def compare(self, typed: Sequence[str], random: Random, answers: float = 0.0) -> str:
        """Type it in both; the differences in words, empty where there is none.

        In the burst the terminal answers now and then between two keys, as often as `answers` says, from 0 to 1.
        """
        keys = "".join(typed)
        burst = mixed(keys_of(keys), random, answers) if answers else keys
        await asyncio.gather(self._slowly(keys), self._at_once(burst, random))
        slow, fast = await self.slow.state(), await self.fast.state()
        return "".join(
            f"\n{name}\n  slowly {slow.get(name)!r}\n  burst  {fast.get(name)!r}"
            for name in {**slow, **fast}
            if slow.get(name) != fast.get(name)
        )

    async def _slowly(self, data: str) -> None:
        for key in keys_of(data):
            self.slow.read(key)
            await self.slow.settle()

    async def _at_once(self, data: str, random: Random) -> None:
        for part in reads_of(data, random):
            self.fast.read(part)
            for _ in range(random.choice((0, 0, 1, 5, 50))):
                await asyncio.sleep(0)
        await self.fast.settle()


@contextmanager
def unsteady(random: Random) -> Generator[None]:
    """Threads take a random moment longer, so that what comes of a key comes at other times in each program. Nothing
    is given up for being slow: a busy machine is not what is tried."""
    real = asyncio.to_thread

    async def to_thread(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        await asyncio.sleep(random.random() ** 3 * 0.03)
        found = await real(call, *given, **named)
        await asyncio.sleep(random.random() ** 3 * 0.03)
        return found

    with ExitStack() as changed:
        changed.enter_context(patch.object(asyncio, "to_thread", to_thread))
        # A notice lies over the panes at a place and for a time that depend on when it came.
        changed.enter_context(patch.object(WorkspaceApp, "notify", lambda *_given, **_named: None))
        for module in (keyboard, dialog, pane):
            changed.enter_context(patch.object(module, "AT_MOST", PATIENCE))
        yield


@asynccontextmanager
async def two_programs(folder: Path, size: tuple[int, int]) -> AsyncGenerator[Both]:
    with unsteady(Random(0)):
        async with _two_programs(folder, size) as both:
            yield both


@asynccontextmanager
async def _two_programs(folder: Path, size: tuple[int, int]) -> AsyncGenerator[Both]:
    typists: list[Typist] = []
    ended = asyncio.Event()

    async def program(workspace: Path, there: asyncio.Future[Typist]) -> None:
        repository(workspace, FILES)
        for name, value in (("user.name", "A"), ("user.email", "a@example.com")):
            git(workspace, "config", name, value)

        def prepare(session: Session) -> None:
            session.models.model = Ready([])
            session.workspace._watched = False  # what it tells comes at another time in each

        async with on_screen(workspace, size=size, prepare=prepare) as it:
            it.session.workspace.index.replace(sorted(FILES))
            it.app._disable_notifications = True  # they come and go with the time, and lie under the mouse
            there.set_result(Typist(it, workspace))
            await ended.wait()

    tasks = []
    for name in ("slow", "fast"):
        there: asyncio.Future[Typist] = asyncio.get_running_loop().create_future()
        tasks.append(asyncio.create_task(program(folder / name, there)))
        await asyncio.wait([there, tasks[-1]], return_when=asyncio.FIRST_COMPLETED)
        if tasks[-1].done():
            await tasks[-1]
        typists.append(there.result())
    try:
        yield Both(*typists)
    finally:
        ended.set()
        await asyncio.gather(*tasks)


def _batch() -> dict[str, Any]:
    edits = [{"search": f"return get(url, {n})", "replace": f"return get(url, {n}, 5)"} for n in (0, 2, 4)]
    return reply(
        "Adds timeouts.",
        todos=[{"text": f"todo {n}", "aiText": "", "done": False} for n in range(3)],
        fileChanges=[
            {"path": "api.py", "edits": edits, "todoIndex": 0},
            {"path": "models.py", "edits": [{"search": "pass", "replace": "store(self)"}], "todoIndex": 1},
            {"path": "new.py", "content": "new = 1\n"},
        ],
        nextSteps=[{"html": "Run", "inputText": "run the tests"}, {"html": "Go on", "inputText": "continue"}],
    )


def _path(widget: Any) -> str:
    if widget is None:
        return ""
    nodes = [node for node in widget.ancestors_with_self if isinstance(node, Pane) or node is widget]
    return " ".join(
        f"{type(node).__name__}#{node.id or getattr(node, 'path', '')}" for node in reversed(nodes)
    )


def _text(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None

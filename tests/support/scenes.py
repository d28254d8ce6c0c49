"""Scenes of the screen: typical moments of work at each size and in each variant of a terminal.

`make snapshots` draws them as SVG and text files in `build/scenes`. A test compares the text of those in `COMPARED`
with `tests/snapshots`; in the others the order of events depends on time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from support.screens import Driven, on_screen
from support.sessions import reply
from support.snapshots import FOLDER, Picture, _settled, svg, without_durations

from tui_agent.errors import TuiAgentError
from tui_agent.ui.themes import Depth
from tui_agent.ui.widgets.transcript import Transcript

DRAWN = Path(__file__).parents[2] / "build" / "scenes"
SIZES = ((80, 24), (100, 30), (120, 40), (160, 48), (240, 70))
#: Scenes whose text a test compares, and the sizes at which it does.
COMPARED = ("first", "answer", "changes", "conflict", "graph")
COMPARED_AT = ((80, 24), (120, 40), (160, 48))
#: Size of the variants.
USUAL = (120, 40)
#: Variants of the terminal, drawn at `USUAL`: colour depth, theme, and whether the screen is plain.
VARIANTS: dict[str, tuple[Depth, str, bool]] = {
    "16": ("colors-16", "dark", False),
    "light": ("colors", "light", False),
    "no-colour": ("colors", "no-colour", False),
    "plain": ("colors", "dark", True),
}

ANSWER = """Both clients now give up after the time in `settings.py`. Until now a call waited for ever.

The lookup passes the timeout on **every** attempt, so three attempts take at most 30 s. The charge is still sent once:
a second charge would cost money.

```python
def fetch(self, order: str) -> Order:
    data = with_retries(lambda: self._send(request, timeout=TIMEOUT))
    return Order.from_json(data)
```

These are the calls and their limits:

| call | attempts | seconds |
|---|:--:|---:|
| lookup | 3 | 30 |
| charge | 1 | 10 |

The difference to the old charge is one line:

```diff
-response = self._send(request)
+response = self._send(request, timeout=TIMEOUT)
```

1. Run the tests.
2. Look at the log of a slow day.

Nothing is written before you apply it.
"""
_OLD = "FAILED test_a.py::test_old - assert 1 == 0"
_FAILURE = """____ test_new ____

    def test_new():
>       assert f() == 1
E       assert 3 == 1

a0.py:2: AssertionError"""
#: Prints as pytest does: an old failure, and a new one if the function returns 3.
CHECK = (
    f"grep -q 'return 3' a0.py || {{ echo '{_OLD}'; echo '1 failed in 0.1s'; exit 1; }}; "
    f"echo '{_FAILURE}'; echo '{_OLD}'; "
    "echo 'FAILED test_a.py::test_new - assert 3 == 1'; echo '2 failed in 0.1s'; exit 1"
)


class Scene(NamedTuple):
    """The replies of the model, the options of the session, and the way to the moment."""

    replies: list[Any]
    options: dict[str, Any]
    reach: Callable[[Driven, Path], Awaitable[None]]


def _file(number: int) -> str:
    return "".join(f"def f{at}():\n    return {at}\n\n\n# {number}.{at}\n\n" for at in range(10))


async def _asked(it: Driven, words: str) -> None:
    await it.session.chat.submit(words)
    await it.session.chat.finished()


async def _first(it: Driven, _: Path) -> None:
    await it.pilot.pause()


async def _answered(it: Driven, _: Path) -> None:
    await _asked(it, "Why did a slow service stop the shop?")


async def _changed(it: Driven, _: Path) -> None:
    await _asked(it, "Add one to every second function.")
    await it.press("f5")


async def _clashed(it: Driven, folder: Path) -> None:
    await _asked(it, "Return 3.")
    (folder / "a0.py").write_text("def f():\n    return 2\n")
    with suppress(TuiAgentError):
        await it.session.review.apply()
    await it.until(
        lambda: any(one.state == "conflict" for one in it.session.state.review.changes), "a conflict"
    )
    await it.press("f5")


async def _failed(it: Driven, _: Path) -> None:
    await _asked(it, "Return 3.")
    await it.until(
        lambda: it.session.state.checks.results and not it.session.state.checks.running, "the check"
    )


async def _split(it: Driven, _: Path) -> None:
    await _asked(it, "Split the work.")
    await it.press("ctrl+o", "s")


async def _waiting(it: Driven, folder: Path) -> None:
    """Six conflicts, changes, a check that failed and sub-tasks that are ready."""
    await _asked(it, "Do all of it.")
    for number in range(6):
        path = folder / f"m{number}.py"
        path.write_text(path.read_text().replace("return 0", "return 100"))
    with suppress(TuiAgentError):
        await it.session.review.apply()
    await it.until(
        lambda: not it.session.state.turn.running and not it.session.state.checks.running, "the turn"
    )
    await it.session.checks.run()
    await it.press("ctrl+n")


def _tasks() -> list[dict[str, Any]]:
    names = [
        f"{part}-{step}"
        for part in ("api", "ui", "log", "docs")
        for step in ("plan", "write", "test", "read", "end")
    ]
    return [
        {
            "id": name,
            "goal": f"{name.replace('-', ': ')} the part that carries orders from the shop to its store",
            "dependencies": [names[at - 1]] if at % 5 else [],
        }
        for at, name in enumerate(names)
    ]


WRONG = {"path": "a0.py", "edits": [{"search": "return 1", "replace": "return 3"}]}
_CHECKED = f"checks.commands={json.dumps([{'name': 'tests', 'command': CHECK}])}"
_MANY = [
    {
        "path": f"m{n}.py",
        "edits": [
            {
                "search": f"    return {at}\n\n\n# {n}.{at}\n",
                "replace": f"    return {at + 1}\n\n\n# {n}.{at}\n",
            }
            for at in range(0, 10, 2)
        ],
    }
    for n in range(12)
]
SCENES: dict[str, Scene] = {
    "first": Scene([], {}, _first),
    "answer": Scene([reply("Calls give up in time.", message=ANSWER)], {}, _answered),
    "changes": Scene([reply("Adds one.", fileChanges=_MANY)], {}, _changed),
    "conflict": Scene([reply("Three.", fileChanges=[WRONG]), reply("You decide.")], {}, _clashed),
    "checks": Scene(
        [reply("Three.", fileChanges=[WRONG])], {"overrides": (_CHECKED, "checks.repairs=0")}, _failed
    ),
    "inbox": Scene(
        [
            reply("All.", fileChanges=[WRONG, *_MANY[:8]], subTasks=_tasks()[:6]),
            *(reply("You decide.") for _ in range(4)),
        ],
        {"overrides": (_CHECKED, "checks.repairs=0")},
        _waiting,
    ),
    "graph": Scene(
        [reply("In parts.", subTasks=_tasks())], {"overrides": ("subtasks.max_per_turn=20",)}, _split
    ),
}


@asynccontextmanager
async def scene(
    name: str, folder: Path, size: tuple[int, int], depth: Depth = "colors", *, plain: bool = False
) -> AsyncGenerator[Driven]:
    work = folder / "shop"
    work.mkdir(parents=True)
    (work / "a0.py").write_text("def f():\n    return 1\n")
    for number in range(12):
        (work / f"m{number}.py").write_text(_file(number))
    replies, options, reach = SCENES[name]
    async with on_screen(work, replies, size=size, depth=depth, plain=plain, **options) as it:
        await reach(it, work)
        yield it


async def pictures(name: str, sizes: tuple[tuple[int, int], ...], *, variants: bool) -> dict[str, Picture]:
    """The scene by size, and at `USUAL` in each variant."""
    with without_durations():
        return await _pictures(name, sizes, variants)


async def _pictures(name: str, sizes: tuple[tuple[int, int], ...], variants: bool) -> dict[str, Picture]:
    found: dict[str, Picture] = {}

    async def take(it: Driven, as_: str) -> None:
        transcript = it.screen.query_one(Transcript)
        transcript.styles.scrollbar_size_vertical = 0
        it.app.clear_notifications()
        found[f"{name}-{as_}"] = Picture(await _settled(it.app, it.pilot, transcript), it.app.size.width)

    with tempfile.TemporaryDirectory() as folder:
        async with scene(name, Path(folder), sizes[0]) as it:
            for width, height in sizes:
                await it.pilot.resize_terminal(width, height)
                await take(it, f"{width}x{height}")
    for variant, (depth, theme, plain) in VARIANTS.items() if variants else ():
        with tempfile.TemporaryDirectory() as folder:
            async with scene(name, Path(folder), USUAL, depth, plain=plain) as it:
                it.app._use(theme)
                await take(it, variant)
    return found


def text_of(picture: Picture) -> str:
    lines = ("".join(span.text for span in line) for line in picture.lines)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def kept_texts() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.txt"))}


async def _all() -> dict[str, Picture]:
    found: dict[str, Picture] = {}
    for name in SCENES:
        found |= await pictures(name, SIZES, variants=True)
    return found


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"TUI_AGENT_HOME": home, "GIT_CONFIG_GLOBAL": f"{home}/gitconfig"}
        drawn = asyncio.run(_all())
    DRAWN.mkdir(parents=True, exist_ok=True)
    for name, picture in drawn.items():
        (DRAWN / f"{name}.svg").write_text(svg(picture.lines, picture.width), encoding="utf-8", newline="\n")
        (DRAWN / f"{name}.txt").write_text(text_of(picture), encoding="utf-8")
    for name in (f"{scene}-{width}x{height}" for scene in COMPARED for width, height in COMPARED_AT):
        (FOLDER / f"{name}.txt").write_text(text_of(drawn[name]), encoding="utf-8", newline="\n")
    sys.stdout.write(f"{len(drawn)} pictures are in {DRAWN}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

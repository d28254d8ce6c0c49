"""What a command leaves behind, and what it takes: the way back from a view, limits and survivors, on each rung."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS)] * (str(TESTS) not in sys.path)

from support.views import Runner, in_bubblewrap, in_view, on_a_copy, text  # noqa: E402

from tests.proofs.tally import Tally  # noqa: E402
from tests.sandbox.test_survivors import ODD, SPACES, survivors  # noqa: E402
from tests.sandbox.test_way_back import DEEP, grown_by  # noqa: E402
from tui_agent.sandbox.build_cache import KeptLayer, RunLayer, key_of  # noqa: E402
from tui_agent.sandbox.environment import variables  # noqa: E402
from tui_agent.sandbox.isolation import runner_for  # noqa: E402
from tui_agent.sandbox.run import Run, RunResult  # noqa: E402
from tui_agent.sandbox.view_plan import MEGABYTE, Limits, NoView, plan  # noqa: E402

PYTHON = shlex.quote(sys.executable)
BUILT = "mkdir -p target; touch target/CACHEDIR.TAG target/out"


async def over_builds(
    root: Path, command: str, *, timeout: float = 60, limits: Limits | None = None
) -> RunResult:
    """In an overlay over what a build before it kept; what the command writes into folders of builds is kept, too."""
    state, result = root.parents[2] / "builds", None
    for words in (BUILT, command):
        made = plan(root, limits=limits)
        paths = _files(root)
        lent = KeptLayer(state, str(root), 64 * MEGABYTE).borrow(
            key_of((), ()), paths, clean=True, command="make"
        )
        if lent is None:
            raise NoView("kept", 0, "there is no layer of builds")
        ignored: asyncio.Future[set[str]] = asyncio.get_running_loop().create_future()
        ignored.set_result({"target/a"})
        chosen, _ = variables(str(root), made.places, os.environ)
        try:
            runner = runner_for(made, RunLayer(lent, ignored))
            result = await Run(timeout).alone(runner, ["/bin/sh", "-c", words], chosen)
        finally:
            lent.close()
    assert result is not None
    return result


def _files(root: Path) -> list[str]:
    found = os.walk(root)
    return [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in found for name in names]


RUNGS: dict[str, Runner] = {
    "overlay": in_view,
    "overlay, builds kept": over_builds,
    "bubblewrap": in_bubblewrap,
    "Landlock": on_a_copy,
}
#: Folders and links that lead out of the workspace, to the folder that holds it.
LINKS = ("../..", "../../letters", "../../letters/private.txt", "inner/../../../letters", "ABSOLUTE")
#: What takes the place of the link.
PLACES = (
    "mkdir -p docs/letters docs/private.txt",
    "mkdir docs; echo CANARY > docs/private.txt",
    "mkdir -p docs/x; rmdir docs/x; mkdir docs/x",
    "mkdir -p docs/letters; ln -s ../../.. docs/letters/up",
    "mkdir new; mv new docs; touch docs/private.txt",
)
LIMITS = Limits(layer=64 * MEGABYTE, memory=300 * MEGABYTE, processes=60)
HELD = "import os, time; f = os.memfd_create('x'); [os.write(f, bytes(1 << 20)) for _ in range(400)]; time.sleep(60)"

Attack = Callable[[Path, Runner], Awaitable[bool]]


def prove(tally: Tally, scale: float) -> None:
    """Kinds of attacks × the rungs that this machine has."""
    asyncio.run(_all(tally, max(1, round(len(LINKS) * scale))))


async def _all(tally: Tally, links: int) -> None:
    for rung, view in RUNGS.items():
        try:
            await _in_folder(lambda root, view: view(root, "true"), view)
        except NoView as error:
            sys.stderr.write(f"{rung} is skipped: {error}\n")
            continue
        for link in LINKS[:links]:
            for words in PLACES:
                attack = _replaced(link, words)
                held = await _in_folder(attack, view)
                tally.case("a link replaced by a folder", held, column=rung, what=f"{link}: {words}")
        for kind, attack in ATTACKS.items():
            tally.case(kind, await _in_folder(attack, view), column=rung)


async def _in_folder(attack: Callable[[Path, Runner], Awaitable[object]], view: Runner) -> bool:
    with tempfile.TemporaryDirectory(prefix="tui-agent-attack-") as folder:
        person = Path(folder).resolve() / "person"  # noqa: ASYNC240
        (person / "letters").mkdir(parents=True)
        (person / "letters" / "private.txt").write_text("CANARY")
        root = person / "projects" / "work"
        root.mkdir(parents=True)
        (root / "odd.py").write_text(ODD)
        (root / "spaces.py").write_text(SPACES)
        (root / "held.py").write_text(HELD)
        return bool(await attack(root, view))


def _replaced(link: str, words: str) -> Attack:
    async def attack(root: Path, view: Runner) -> bool:
        target = str(root.parents[1]) if link == "ABSOLUTE" else link
        os.symlink(target, root / "docs")
        result = await view(root, f"rm docs; {words}; true")
        found = {(one.path, one.kind) for one in result.changes}
        own = {"docs/private.txt", "docs/letters/up"}
        known = result.status == 0 and ("docs", "deleted") in found
        return known and all(
            kind in ("new", "link") and path in own for path, kind in found - {("docs", "deleted")}
        )

    return attack


async def _deep(root: Path, view: Runner) -> bool:
    result = await view(root, f"echo said; {DEEP}; exit 3")
    return (result.status, text(result)) == (3, "said\n") and "deep" in result.unread


async def _sparse(root: Path, view: Runner) -> bool:
    grown = grown_by()
    result = await view(root, "for i in $(seq 200); do truncate -s 5000000 z$i; done; truncate -s 900M large")
    return len(result.changes) == 201 and grown() < 30


async def _odd(root: Path, view: Runner, words: str, how: str) -> bool:
    own = secrets.token_hex(8)
    limits = LIMITS if words != "1 fork" else Limits(processes=40)
    result = await view(root, f"{PYTHON} odd.py {words} {own}", limits=limits, timeout=20)
    return result.how == how and not survivors(own)


async def _memfd(root: Path, view: Runner) -> bool:
    return (await view(root, f"{PYTHON} held.py", limits=LIMITS, timeout=20)).how == "memory"


async def _spaces(root: Path, view: Runner) -> bool:
    return text(await view(root, f"{PYTHON} spaces.py")) == "False 1\n" * 4 + "-1 38 0\n"


ATTACKS: dict[str, Attack] = {
    "330 folders in each other": _deep,
    "large files that take no room": _sparse,
    "an undecodable name: memory": lambda root, view: _odd(root, view, "400 hold", "memory"),
    "an undecodable name: processes": lambda root, view: _odd(root, view, "1 fork", "processes"),
    "an undecodable name: outliving": lambda root, view: _odd(root, view, "1 leave", "exit"),
    "memory without a name": _memfd,
    "namespaces by clone": _spaces,
}

"""What a view shows of secrets: every place that one lies in, read in every way, on each rung.

Sessions are the program's own. A case holds if the secret is in nothing that a command printed for the person, who sees
what commands see: plain, backwards, in Base64 or in hexadecimal; and if the command did see the folder.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from msgspec import Struct

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS)] * (str(TESTS) not in sys.path)

from support.disguises import CANARY  # noqa: E402
from support.repositories import git, repository  # noqa: E402
from support.sessions import open_session, reply  # noqa: E402

from tests.proofs.tally import Tally  # noqa: E402
from tests.sandbox.test_git_in_view import IDENTITY, PRINTS, made_in  # noqa: E402
from tests.sandbox.test_git_in_view import SECRET as OF_GIT  # noqa: E402
from tests.sandbox.test_secrets import PLACES, SETTINGS, STORES  # noqa: E402
from tui_agent.edits.change import Pick  # noqa: E402
from tui_agent.errors import TuiAgentError  # noqa: E402
from tui_agent.sandbox.isolation import ORDER, WITHOUT  # noqa: E402
from tui_agent.session.session import Session  # noqa: E402
from tui_agent.store.commands import Isolated  # noqa: E402

RUNGS: dict[str, Isolated] = {"overlay": "overlay", "bubblewrap": "bubblewrap", "Landlock": "landlock"}
READ = "chmod -R u+rwX .; find . -type f -size -500k -print0 | xargs -0 cat; cat $(find . -type l)"
#: Each prints all that can be read, in one form.
WAYS = {
    "cat": f"({READ})",
    "rev": f"({READ}) | rev",
    "base64": f"({READ}) | base64 -w 0",
    "sed": f"({READ}) | sed 's/./& /g'",
}
RENAMED = (".env", "id_rsa", "conf/passwords.txt")


class Case(Struct):
    """`make` gets a folder with `work`, the workspace, and `person`, which may be a home. `attack` returns what was
    printed. renames: what a reply renames to x.txt."""

    kind: str
    what: str
    make: Callable[[Path], object]
    attack: Callable[[Session, Path], Awaitable[str]]
    renames: str = ""
    parent: str | None = None


def prove(tally: Tally, scale: float) -> None:
    """Cases × the rungs that this machine has; with a smaller `scale` every so many-th case."""
    cases = list(_cases())[:: max(1, round(1 / scale))]
    for column, isolated in RUNGS.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(WITHOUT, ",".join(ORDER[: ORDER.index(isolated)]))
            if why := asyncio.run(_why_not(isolated)):
                sys.stderr.write(f"{column} is skipped: {why}\n")
                continue
            for case in cases:
                try:
                    told = asyncio.run(_printed(case))
                except TuiAgentError as error:
                    tally.case(case.kind, False, column=column, what=f"{case.what}: it did not run: {error}")
                    continue
                held = "a.txt" in told and not _shows(told)
                tally.case(case.kind, held, column=column, what=case.what)


def _cases() -> Iterator[Case]:
    for place, put in PLACES.items():
        for way, words in WAYS.items():
            yield Case(
                _kind_of(place), f"{place}: {way}", lambda folder, put=put: put(folder / "work"), _runs(words)
            )
    for name in RENAMED:
        for when, attack in {
            "the same turn": _at_once,
            "the next turn": _later,
            "a check": _in_check,
        }.items():
            yield Case(
                f"a rename: {when}",
                name,
                lambda folder, name=name: _put(folder / "work" / name),
                attack,
                name,
            )
    for words in PRINTS:
        kind = f"git: {' '.join(words.split()[:2]).rstrip(';')} …"
        yield Case(kind, words, _repository, _runs(f"export {IDENTITY}; {words}"))
    yield Case("a password in git's settings", "", _remote, _runs(f"cat .git/config; git remote -v; {READ}"))
    yield Case("stores of tools in the home", "", _stores, _runs(f"cd PERSON; {READ}"))
    if not os.access("/opt", os.W_OK):
        sys.stderr.write("a home below /opt is skipped: only root may write there\n")
        return
    yield Case(
        "a home below /opt", "", _stores, _runs(f"cd PERSON; {READ}; cat PERSON/.ssh/id_rsa"), parent="/opt"
    )
    yield Case("private files below /opt", "", _private, _runs("cat PERSON/../a/b/c/*; ls"), parent="/opt")
    yield Case(
        "a workspace below /opt", "", _stores, _runs("cat PERSON/../work/.env; cat .env"), parent="/opt"
    )


def _kind_of(place: str) -> str:
    return place if "/" not in place or " " in place else f"`{place}`"


async def _why_not(isolated: Isolated) -> str:
    with tempfile.TemporaryDirectory(prefix="tui-agent-attack-") as folder:
        async with open_session(Path(folder).resolve()) as session:  # noqa: ASYNC240
            rung = await session.commands.views.rung()
            return "" if rung.isolated == isolated else rung.why


async def _printed(case: Case) -> str:
    prefix = "tui-agent-attack-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix, dir=case.parent) as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        folder = Path(name).resolve()  # noqa: ASYNC240
        folder.chmod(0o755)
        patch.setenv("TUI_AGENT_HOME", str(folder / "ours"))
        patch.setenv("HOME", str(folder / "person"))
        for below in ("work", "person"):
            (folder / below).mkdir()
        case.make(folder)
        (folder / "work" / "a.txt").touch()
        change = {"path": case.renames, "renameTo": "x.txt"}
        replies = [reply("Renamed.", fileChanges=[change]), reply("Nothing.")] if case.renames else []
        async with open_session(folder / "work", replies) as session:
            if case.renames:
                await _turn(session, "Rename it")
            return await case.attack(session, folder)


def _shows(told: str) -> bool:
    dense = "".join(told.split())
    return any(form in dense for secret in (CANARY, OF_GIT) for form in _forms(secret.encode()))


def _forms(secret: bytes) -> Iterator[str]:
    yield secret.decode()
    yield secret.decode()[::-1]
    yield secret.hex()
    yield from (base64.b64encode(b"\0" * shift + secret).decode()[4:-4] for shift in range(3))


# ── what is done ─────────────────────────────────────────────────────────────────────────────────────────────


def _runs(words: str) -> Callable[[Session, Path], Awaitable[str]]:
    async def attack(session: Session, folder: Path) -> str:
        await session.commands.run(f"ls; {words.replace('PERSON', str(folder / 'person'))}", allowed=True)
        await session.commands.ended()
        return session.state.commands.results[-1].output

    return attack


_at_once = _runs("cat x.txt; rev x.txt; base64 x.txt; git diff")


async def _later(session: Session, folder: Path) -> str:
    await _turn(session, "And now?")
    first = await _at_once(session, folder)
    await session.review.apply(
        [Pick(change.id, None, change.version) for change in session.state.review.open]
    )
    (folder / "work" / "x.txt").write_text(f"{SETTINGS}MORE=1\n")
    return first + await _at_once(session, folder)


async def _in_check(session: Session, _: Path) -> str:
    result, _report = await session.commands.for_check(
        "ls; cat x.txt; rev x.txt; base64 x.txt", "trial", 20.0
    )
    return result.output


async def _turn(session: Session, words: str) -> None:
    await session.chat.submit(words)
    await session.chat.finished()


# ── what is there ────────────────────────────────────────────────────────────────────────────────────────────


def _put(path: Path, content: str = SETTINGS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def _repository(folder: Path) -> None:
    (folder / "work").rmdir()
    made_in(folder)


def _remote(folder: Path) -> None:
    root = repository(folder / "work", {"b.txt": "b\n"})
    for name, address in {"one": f"me:p@{CANARY}@", "two": f"{CANARY}@", "three": f"me:a/b{CANARY}@"}.items():
        git(root, "remote", "add", name, f"https://{address}example.org/x.git")
    git(root, "config", "http.https://example.org/.extraheader", f"Authorization: Basic {CANARY}")


def _stores(folder: Path) -> None:
    for path in (*STORES, ".ssh/id_rsa", ".netrc", "notes.txt"):
        _put(folder / "person" / path)
    _put(folder / "work" / ".env")


def _private(folder: Path) -> None:
    _put(folder / "a" / "b" / "c" / "private.txt")
    (folder / "a" / "b" / "c" / "private.txt").chmod(0o600)
    _put(folder / "a" / "b" / "c" / ".npmrc")

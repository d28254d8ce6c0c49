"""Secrets by their value: what a command prints of one, plain or transformed, goes to no model and into no export."""

from __future__ import annotations

import base64
import hashlib
import json
from itertools import pairwise
from pathlib import Path

import pytest
from support.repositories import git, repository
from support.sessions import calls, model_of, open_session, reply
from support.trees import make_tree

from tui_agent import cli
from tui_agent.files.masking import MASK
from tui_agent.log.log import events_of
from tui_agent.log.transfer import as_json, as_markdown, known_secrets, parsed
from tui_agent.session.session import Session
from tui_agent.store import events as e

SECRET = "quokka-7431-Vermilion"
NEUTRAL = "w9TfK2mQz81LbX"
ENV = f"PORT=8080\nDEBUG=true\nDB_PASSWORD={SECRET}\nSOMETHING={NEUTRAL}\nAPP_ENV=production\n"
#: A file with the same lines and more, which no rule about names or whole contents can tell.
NOTES = f"What I wrote down\n{ENV}"
#: What is printed of it.
PRINTED = {
    "plain": "cat notes.txt",
    "base64": "base64 notes.txt",
    "base64 of a part": "tail -c +7 notes.txt | base64 -w 0",
    "backwards": "rev notes.txt",
    "hexadecimal": "od -An -tx1 notes.txt",
    "letter by letter": "sed 's/./& /g' notes.txt",
    "folded": "fold -w 3 notes.txt",
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return make_tree(
        tmp_path / "work", {"a.py": "PORT = 8080  # production\n", ".env": ENV, "notes.txt": NOTES}
    )


def shapes_of(secret: str) -> list[str]:
    data = secret.encode()
    coded = [base64.b64encode(b"\0" * n + data).decode()[4:-4] for n in range(3)]
    return [secret, secret[::-1], data.hex(), *coded]


def dense(text: str) -> str:
    return "".join(text.replace("\\n", "").split())


def holds_a_secret(text: str) -> bool:
    return any(shape in dense(text) for secret in (SECRET, NEUTRAL) for shape in shapes_of(secret))


def sent(session: Session) -> list[str]:
    return [json.dumps(request.messages) for request in model_of(session).requests]


def notices(session: Session) -> list[str]:
    return [one.text for one in session.state.notices.items if "masked" in one.text]


async def test_what_a_command_prints_of_a_secret_is_in_no_request_and_no_export(
    work: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [calls(("run_command", {"command": command})) for command in PRINTED.values()]
    asked = {"path": "notes.txt", "renameTo": "other.txt"}
    renamed = calls(("propose_changes", {"changes": [asked]}), ("run_command", {"command": "cat other.txt"}))
    replies = [*commands, renamed, calls(text="Done."), calls(text="Yes.")]
    async with open_session(work, replies, protocol="tools", overrides=("max_steps=20",)) as session:
        await session.chat.submit("Look around")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        outputs = [result.output for result in session.state.commands.results]
        assert len(outputs) == len(PRINTED) + 1
        assert all(MASK in output for output in outputs)
        assert "PORT=8080" in outputs[0] and "APP_ENV=production" in outputs[0]
        requests = sent(session)
        for earlier, later in pairwise(requests):
            assert later.startswith(earlier[:-1])
        assert not [name for name, text in zip(PRINTED, requests[1:], strict=False) if holds_a_secret(text)]
        (told,) = notices(session)
        assert ".env" in told and SECRET not in told
        await session.chat.submit("And again? I have " + SECRET)
        await session.chat.finished()
        assert not holds_a_secret(sent(session)[-1])
        assert len(notices(session)) == 1
        name = session.state.session.id
        await session.chat.export(tmp_path / "chat.md")
    assert not holds_a_secret((tmp_path / "chat.md").read_text())
    for form in ("md", "json"):
        words = ["export", name, "--format", form, "--output", str(tmp_path / f"out.{form}")]
        assert cli.main(["sessions", *words]) == 0
        text = (tmp_path / f"out.{form}").read_text()
        assert "PORT=8080" in text and not holds_a_secret(text)
    for words in (["show", name], ["show", name, "--json"]):
        assert cli.main(["sessions", *words]) == 0
    text = capsys.readouterr().out
    assert "PORT=8080" in text and not holds_a_secret(text)


async def test_an_output_that_was_kept_before_is_masked_in_exports(work: Path) -> None:
    """The person's own commands print what they print, and are kept so."""
    async with open_session(work) as session:
        await session.commands.run("cat .env notes.txt; base64 notes.txt", allowed=True)
        await session.commands.ended()
        assert SECRET in session.state.commands.results[-1].output
        events, blobs = (
            list(
                events_of(session.log_path or Path()),
            ),
            session.storage.blobs,
        )
        assert holds_a_secret(as_markdown("s", events)) and holds_a_secret(as_json("s", events, blobs))
        secrets = known_secrets(events)
        assert not holds_a_secret(as_markdown("s", events, secrets))
        text = as_json("s", events, blobs, secrets)
        assert parsed(text, Path("s")) and not holds_a_secret(text)


async def test_what_was_sent_stays_and_what_the_person_sends_is_not_masked(work: Path) -> None:
    """A value that becomes known later changes nothing that was sent; a file that is sent as it is hides nothing."""
    (work / ".env").unlink()
    cat = calls(("run_command", {"command": "cat notes.txt"}))
    replies = [cat, cat, calls(text="Done."), cat, calls(text="Done.")]
    async with open_session(work, replies, protocol="tools") as session:
        asked = model_of(session).requests

        def write(*_: object) -> None:
            if len(asked) == 2:
                (work / ".env").write_text(ENV)

        session.subscribe(write)
        await session.chat.submit("Look around")
        await session.chat.finished()
        requests = sent(session)
        assert requests[2].startswith(requests[1][:-1]) and holds_a_secret(requests[1])
        assert not holds_a_secret(requests[2][len(requests[1]) :])
    async with open_session(work, [cat, calls(text="Done.")], protocol="tools") as session:
        (work / ".env").write_text(ENV)
        digest = hashlib.sha256(ENV.encode()).hexdigest()
        await session.journal.record(e.SecretDecided(".env", digest, "send"))
        await session.chat.submit("Look around")
        await session.chat.finished()
        assert holds_a_secret(sent(session)[-1]) and not notices(session)


async def test_a_value_in_another_file_is_masked_and_that_file_is_known_in_part(work: Path) -> None:
    make_tree(work, {"compose.yml": f"environment:\n  DB: {SECRET}\n  PORT: 8080\n"})
    whole = {"path": "compose.yml", "content": "environment: {}\n"}
    edit = {"path": "compose.yml", "edits": [{"search": "PORT: 8080", "replace": "PORT: 9090"}]}
    replies = [reply(fileChanges=[whole]), reply(fileChanges=[edit])]
    async with open_session(work, replies) as session:
        await session.chat.submit("Look at compose.yml")
        await session.chat.finished()
        assert MASK in sent(session)[0] and not holds_a_secret(sent(session)[0])
        assert "were not shown to you" in session.state.review.changes[-1].reason
        await session.chat.submit("Now as an edit")
        await session.chat.finished()
        await session.review.apply()
        assert session.state.turn.ok
    assert (work / "compose.yml").read_text() == f"environment:\n  DB: {SECRET}\n  PORT: 9090\n"


EDITS = {
    "new text": {"edits": [{"search": "PORT = 8080", "replace": f"KEY = '{MASK}'"}]},
    "old text": {"edits": [{"search": f"PORT = 8080  # {MASK}", "replace": "PORT = 1"}]},
    "the whole": {"content": f"PORT = '{MASK}'\n"},
    "a diff": {"diff": f"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-PORT = 8080  # production\n+PORT = {MASK}\n"},
    "a new file": {"path": "new.py", "content": f"KEY = '{MASK}'\n"},
}


@pytest.mark.parametrize("form", EDITS)
async def test_a_mask_is_never_written(work: Path, form: str) -> None:
    change = {"path": "a.py", **EDITS[form]}
    replies = [reply(fileChanges=[change]), reply()]
    async with open_session(work, replies) as session:
        await session.chat.submit("Change a.py")
        await session.chat.finished()
        assert not session.state.review.open
        assert "stands for a secret" in session.state.review.changes[0].reason


async def test_a_file_that_holds_the_word_can_be_edited(work: Path) -> None:
    (work / "a.py").write_text(f"MASK = '{MASK}'\nA = 1\n")
    edit = {
        "path": "a.py",
        "edits": [{"search": f"MASK = '{MASK}'\nA = 1", "replace": f"MASK = '{MASK}'\nA = 2"}],
    }
    async with open_session(work, [reply(fileChanges=[edit])]) as session:
        await session.chat.submit("Change a.py")
        await session.chat.finished()
        assert [change.state for change in session.state.review.changes] == ["pending"]


async def test_what_a_command_wrote_with_a_mask_is_not_taken(work: Path) -> None:
    async with open_session(work) as session:
        await session.commands.run(f"echo 'KEY = {MASK}' > b.py; echo ok > c.txt", allowed=True)
        await session.commands.ended()
        await session.commands.take()
        assert [change.path for change in session.state.review.open] == ["c.txt"]


async def test_a_key_that_an_earlier_version_of_a_file_held_is_masked(tmp_path: Path, home: Path) -> None:
    """Whose name says nothing; plain, and as Base64 has it."""
    key = "AKIA" + "Q3EGRT7NMZ2KXW5P"
    top = repository(tmp_path / "top", {"a.py": f'KEY = "{key}"\n'})
    (top / "a.py").write_text("KEY = load()\n")
    git(top, "commit", "-qam", "Rotated")
    async with open_session(top, [reply()]) as session:
        await session.commands.run(
            "git log -p; git show HEAD~1:a.py | base64; git show HEAD~1:a.py | base64 -w 5"
        )
        await session.commands.ended()
        await session.chat.submit(session.commands.last_output())
        await session.chat.finished()
        (request,) = sent(session)
    assert "Rotated" in request and MASK in request
    lines = request.replace("\\n", "\n")
    assert key not in lines and base64.b64encode(f'KEY = "{key}'.encode()).decode()[8:] not in lines


async def test_a_secret_that_only_git_has_is_masked(tmp_path: Path, home: Path) -> None:
    """A value of an earlier commit that is in no file; and the `.env` above the folder, in the repository's top."""
    top = repository(tmp_path / "top", {".env": ENV, "work/a.py": "a = 1\n"})
    (top / ".env").unlink()
    git(top, "commit", "-qam", "Rotated")
    (top / ".env").write_text("DB_PASSWORD=another-4410-Walrus\n")
    async with open_session(top / "work", [reply()]) as session:
        await session.commands.run_here("git log -p; cat ../.env")
        await session.commands.ended()
        assert SECRET in session.commands.last_output()
        await session.chat.submit(session.commands.last_output())
        await session.chat.finished()
        (request,) = sent(session)
        assert "Rotated" in request and MASK in request
        assert not holds_a_secret(request) and "Walrus" not in request
        name = session.state.session.id
        await session.chat.export(tmp_path / "chat.md")
    assert cli.main(["sessions", "export", name, "--output", str(tmp_path / "out.md")]) == 0
    for path in ("chat.md", "out.md"):
        text = (tmp_path / path).read_text()
        assert "Rotated" in text and not holds_a_secret(text) and "Walrus" not in text

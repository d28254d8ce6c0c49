"""`sessions export --format html|patch`: a page that holds no script and no secret, and a patch that git applies."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.command_line import Outcome, run_here
from support.repositories import git, repository
from support.sessions import open_session, reply

from tui_agent.edits.change import Change, Checkpoint, FileStep, Pick
from tui_agent.files.blobs import Blobs
from tui_agent.files.secret_values import SecretValues
from tui_agent.log.transfer import as_patch
from tui_agent.log.web_page import as_web_page
from tui_agent.store.events import ChangeProposed, CheckpointMade

KEY = "sk-abcdefghij0123456789abcdef"
HOSTILE = (
    "<script>alert(1)</script> ![p](http://evil.example/p.png) [x](javascript:alert(2)) <img src=x onerror=y>"
)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = (tmp_path / "work").resolve()
    repository(
        folder,
        {"api.py": "def fetch(url):\n    return get(url)\n", "old name.txt": "old\n", "run.sh": "echo\n"},
    )
    monkeypatch.chdir(folder)
    return folder


async def make(workspace: Path, *, undo: bool = False) -> str:
    """A session with sub-tasks, hostile text and an applied batch of all kinds of changes; returns its id."""
    edit = {
        "path": "api.py",
        "edits": [{"search": "get(url)", "replace": "get(url, timeout=5)  # </span><script>"}],
    }
    changes = [
        edit,
        {"path": "new dir/täst.py", "content": "x = 1"},
        {"path": "old name.txt", "delete": True},
        {"path": "run.sh", "renameTo": "bin/run.sh"},
    ]
    tasks = [
        {"id": "a", "goal": "Check <b>a</b>", "files": [], "dependencies": [], "autoExecute": False},
        {"id": "b", "goal": "Check b", "files": [], "dependencies": ["a"], "autoExecute": False},
    ]
    replies = [reply("Adds a timeout.", message=HOSTILE, fileChanges=changes, subTasks=tasks)]
    async with open_session(workspace, replies) as session:
        await session.chat.submit(f"add a timeout, my key is {KEY} <script>")
        await session.chat.finished()
        await session.review.apply()
        if undo:
            await session.review.undo()
        return session.state.session.id


class Tags(HTMLParser):
    """Collects the tags of a page and the addresses in their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def export(capfd: pytest.CaptureFixture[str], name: str, form: str) -> Outcome:
    done = run_here(capfd, ["sessions", "export", name, "--format", form])
    assert done.status == 0, done
    return done


async def test_the_page_shows_the_session_and_holds_no_script_and_no_secret(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = export(capfd, await make(workspace), "html").out
    found = Tags(page)
    assert not found.tags & {"script", "img", "iframe", "link", "object", "form"}, found.tags
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "src"]
    assert all(value != "javascript:alert(2)" for _, value in found.attributes)
    assert "default-src 'none'" in page and KEY not in page
    assert '<span class="add">+    return get(url, timeout=5)  # &lt;/span&gt;&lt;script&gt;</span>' in page
    assert '<span class="del">-    return get(url)</span>' in page
    assert "<svg" in page and page.count("<rect") == 2 and "<path" in page
    assert "Check &lt;b&gt;a&lt;/b&gt;" in page and "run.sh → bin/run.sh · applied" in page


def test_a_change_of_an_agent_is_on_the_page(tmp_path: Path) -> None:
    """It belongs to no message. Its name and its line hold characters that separate lines elsewhere."""
    blobs = Blobs(tmp_path / "blobs")
    before, after = (blobs.put_text(f"{text}\u2028</pre><b>\n") for text in ("one", "two"))
    change = Change("a1.1", 0, "new\nline.py", "edit", base=before, new=after)
    page = as_web_page("x", [ChangeProposed(change)], blobs, SecretValues())
    assert page.count('class="add"') == page.count('class="del"') == 1
    assert "+two" in page and "&lt;/pre&gt;&lt;b&gt;" in page and "<b>" not in page


async def test_git_applies_the_patch_to_the_same_files(
    workspace: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    done = export(capfd, await make(workspace), "patch")
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(workspace), str(other))
    (tmp_path / "session.patch").write_text(done.out)
    git(other, "apply", "--index", str(tmp_path / "session.patch"))
    for path in ("api.py", "new dir/täst.py", "bin/run.sh"):
        assert (other / path).read_bytes() == (workspace / path).read_bytes(), path
    assert not (other / "old name.txt").exists() and not (other / "run.sh").exists()
    assert done.err == ""


@pytest.mark.parametrize("name", ['q"uote.txt', "back\\slash.txt", "é è.txt", "tab\there.txt", "new\nline"])
def test_git_reads_each_name_in_a_patch(tmp_path: Path, name: str) -> None:
    blobs = Blobs(tmp_path / "blobs")
    before, after = (blobs.put_text(text) for text in ("one\n", "one\ntwo"))
    step = FileStep(name, before, after)
    patch, omissions = as_patch([CheckpointMade(Checkpoint("k1", 1, (step,), ()))], blobs, SecretValues())
    assert omissions == []
    (tmp_path / name).write_text("one\n")
    subprocess.run(["git", "apply"], cwd=tmp_path, input=patch.encode(), check=True)
    assert (tmp_path / name).read_text() == "one\ntwo"


@pytest.mark.parametrize(
    ("before", "after", "modes", "head"),
    [
        ("a\n", "b\n", (None, None), "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@"),
        ("a\n", "b\n", (0o644, 0o755), "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n--- a/x\n"),
        ("a\n", "a\n", (0o755, 0o644), "diff --git a/x b/x\nold mode 100755\nnew mode 100644\n"),
        (None, "b\n", (None, 0o755), "diff --git a/x b/x\nnew file mode 100755\n--- /dev/null\n+++ b/x\n"),
        (
            "a\n",
            None,
            (0o755, None),
            "diff --git a/x b/x\ndeleted file mode 100755\n--- a/x\n+++ /dev/null\n",
        ),
        ("a\n", "a\n", (0o644, 0o644), ""),
        (b"\xff", "b\n", (None, None), "x is left out: it is not UTF-8 text"),
        ("gone", "b\n", (None, None), "x is left out: its texts were deleted"),
    ],
)
def test_a_patch_has_the_header_that_git_writes(
    tmp_path: Path,
    before: str | bytes | None,
    after: str | None,
    modes: tuple[int | None, int | None],
    head: str,
) -> None:
    blobs = Blobs(tmp_path / "blobs")

    def key(text: str | bytes | None) -> str:
        data = text.encode() if isinstance(text, str) else text
        return "" if data is None else "0" * 32 if data == b"gone" else blobs.put(data)

    step = FileStep("x", key(before), key(after), mode=modes[0], mode_after=modes[1])
    patch, omissions = as_patch([CheckpointMade(Checkpoint("k1", 1, (step,), ()))], blobs, SecretValues())
    assert (patch.startswith(head) and not omissions) if "left out" not in head else omissions == [head]
    assert bool(patch) is head.startswith("diff")


async def test_an_undone_session_gives_no_patch(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = export(capfd, await make(workspace, undo=True), "patch")
    assert done.out == "" and done.err == "This session has applied no change.\n"
    assert git(workspace, "status", "--porcelain") == ""


async def test_a_secret_in_a_file_is_masked_in_page_and_patch(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change = {"path": "settings.py", "content": f'TOKEN = "{KEY}"\nDEBUG = True\n'}
    async with open_session(workspace, [reply("Adds settings.", fileChanges=[change])]) as session:
        await session.chat.submit("write settings.py")
        await session.chat.finished()
        for one in session.state.review.open:
            await session.review.apply([Pick(one.id)])
        name = session.state.session.id
    assert KEY in (workspace / "settings.py").read_text()
    page, patch = export(capfd, name, "html"), export(capfd, name, "patch")
    for text in (page.out, patch.out):
        assert KEY not in text
    assert re.search("masked|left out", patch.err)

"""Diffs that git writes are read back: each file with its kind, names, mode and text, in every surrounding."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tui_agent.answers import unified
from tui_agent.answers.unified import Section

LINES = [f"line {number}\n" for number in range(60)]
TEXT = "".join(LINES)
#: The text before and after, or None without a file.
FILES: dict[str, tuple[str | None, str | None]] = {
    "edited.py": (TEXT, TEXT.replace("line 5\n", "five\n").replace("line 50\n", "")),
    "top.py": (TEXT, "new\n" + TEXT),
    "end.py": ("a\nb", "a\nb\nc"),
    "ended.py": ("a\nb", "a\nb\n"),
    "unended.py": ("a\nb\n", "a\nb"),
    "dashes.sql": ("-- one\n-- two\n++ three\n", "-- two\n++ four\n"),
    "blank.txt": ("a\n\n\nb\n", "a\n\n\n\nc\n"),
    "dir/added.txt": (None, "one\n\ntwo\n"),
    "added unended.txt": (None, "one"),
    "empty.txt": (None, ""),
    "gone.txt": ("old\n", None),
    "täst.txt": ("a\n", "b\n"),
    'q"uote.txt': ("a\n", "b\n"),
}
EXECUTABLE = {"run.sh": ("echo\n", "echo\n"), "new run.sh": (None, "echo\n")}


def git(folder: Path, *words: str) -> str:
    asked = ["git", "-c", "user.name=x", "-c", "user.email=x@y.z", "-c", "core.quotePath=true", *words]
    return subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same changes by `git diff` and as a mail."""
    folder = tmp_path_factory.mktemp("work")
    git(folder, "init", "-q")
    for side in (0, 1):
        for path, texts in (FILES | EXECUTABLE).items():
            file, text = folder / path, texts[side]
            if text is None:
                file.unlink(missing_ok=True)
                continue
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            if path in EXECUTABLE and side:
                file.chmod(0o755)
        if not side:
            (folder / "moved.txt").write_text(TEXT)
            (folder / "kept.txt").write_text("kept\n" * 9)
            (folder / "picture").write_bytes(b"\0\1")
        else:
            os.rename(folder / "moved.txt", folder / "dir/to.txt")
            (folder / "dir/to.txt").write_text(TEXT.replace("line 9\n", "nine\n"))
            os.rename(folder / "kept.txt", folder / "kept too.txt")
            (folder / "picture").write_bytes(b"\0\2")
            (folder / "link").symlink_to("end.py")
        git(folder, "add", "--all")
        git(folder, "commit", "-qm", "changes")
    return {
        "diff": git(folder, "diff", "-M", "HEAD~1", "HEAD"),
        "mail": git(folder, "format-patch", "-M", "--stdout", "-1"),
        "wide": git(folder, "diff", "-M", "-U0", "HEAD~1", "HEAD"),
    }


def result_of(base: str, section: Section) -> str:
    """The base after the hunks, at the lines of their headers."""
    lines = base.split("\n")
    lines, ended = (lines[:-1], True) if lines[-1] == "" else (lines, False)
    for hunk in reversed(section.hunks):
        old, new = hunk.old.split("\n")[:-1], hunk.new.split("\n")[:-1]
        assert hunk.line is not None and lines[hunk.line : hunk.line + len(old)] == old
        lines[hunk.line : hunk.line + len(old)] = new
        ended = ended if hunk.final_newline is None else hunk.final_newline
    return "\n".join(lines) + ("\n" if ended else "")


def check(found: Sequence[Section]) -> None:
    by_path = {section.path: section for section in found}
    assert len(by_path) == len(found) == len(FILES) + len(EXECUTABLE) + 4
    for path, (base, new) in (FILES | EXECUTABLE).items():
        section = by_path[path]
        assert not section.fault and not section.note and section.rename_to is None, section
        kind = "add" if base is None else "delete" if new is None else "update"
        assert (section.kind, section.executable) == (kind, path in EXECUTABLE or None), path
        if kind == "add":
            assert section.content == new
        elif kind == "update":
            assert result_of(base or "", section) == new, path
    moved, kept = by_path["moved.txt"], by_path["kept.txt"]
    assert (moved.rename_to, kept.rename_to, kept.hunks) == ("dir/to.txt", "kept too.txt", ())
    assert result_of(TEXT, moved) == TEXT.replace("line 9\n", "nine\n")
    assert "binary" in by_path["picture"].fault and "become a link" in by_path["link"].fault


@pytest.mark.parametrize("form", ["diff", "mail", "wide"])
def test_a_patch_of_git_is_read_back(patches: dict[str, str], form: str) -> None:
    lines = patches[form].split("\n")
    found, end = unified.read(lines)
    check(found)
    assert end == len(lines)
    closed = [*lines[:-1], "```", "and", "+not", "-this"]
    found, end = unified.read(closed, closes=lambda at: closed[at] == "```")
    check(found)
    assert end == len(lines) - 1


@pytest.mark.parametrize(
    "below", [["", "Done."], ["Done."], ["", "- a list", "- of items"], ["", "", "# A title"]]
)
def test_a_patch_in_prose_ends_by_its_counts(patches: dict[str, str], below: list[str]) -> None:
    lines = ["Here it is:", "", *patches["diff"].rstrip("\n").split("\n"), *below]
    begin = next(at for at in range(len(lines)) if unified.begins(lines, at))
    found, end = unified.read(lines, begin, bare=True)
    assert begin == 2 and lines[end:] in (below, below[1:], below[2:])
    check(found)


def test_a_patch_with_wrong_counts_is_read_in_a_fence(patches: dict[str, str]) -> None:
    chance = Random(1)
    lines = [
        f"@@ -{chance.randrange(90)},{chance.randrange(1, 9)} +{chance.randrange(90)} @@"
        if line.startswith("@@ ")
        else line
        for line in patches["diff"].split("\n")[:-1]
    ]
    found, _ = unified.read([*lines, "```"], closes=lambda at: at == len(lines))
    right, _ = unified.read(patches["diff"].split("\n"))
    assert [(one.path, one.kind, one.rename_to) for one in found] == [
        (one.path, one.kind, one.rename_to) for one in right
    ]
    texts = [
        [(hunk.old, hunk.new) for one in each if one.kind == "update" for hunk in one.hunks]
        for each in (found, right)
    ]
    assert texts[0] == texts[1]

"""Which secret-looking files a view hides, and which the person reveals by a glob."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tui_agent.sandbox import hidden_files
from tui_agent.sandbox.hidden_files import HiddenFiles, sent_by_person
from tui_agent.sandbox.view_plan import Seed

KEY = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
TOKEN = f"first = 1\ntoken = '{KEY}'\n"


@pytest.mark.parametrize(
    ("globs", "hidden"),
    [
        ((), [".env", "deep/.env.test", "deep/id_rsa"]),
        ((".env",), ["deep/.env.test", "deep/id_rsa"]),
        (("**/.env*",), [".env", "deep/id_rsa"]),
        (("*.env*",), ["deep/id_rsa"]),
        (("deep/*",), [".env"]),
    ],
)
def test_a_glob_reveals_the_files_that_it_fits(
    tmp_path: Path, globs: tuple[str, ...], hidden: list[str]
) -> None:
    (tmp_path / "deep").mkdir()
    for path in (".env", "deep/.env.test", "deep/id_rsa", "a.py"):
        (tmp_path / path).write_text("A=1\n")
    assert HiddenFiles(str(tmp_path)).paths(globs) == hidden


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A secret by name, one by content, and a plain file."""
    (tmp_path / ".env").write_text("PASSWORD=correct-horse-9\n")
    (tmp_path / "notes.txt").write_text(TOKEN)
    (tmp_path / "a.py").write_text("print(1)\n")
    return tmp_path


def test_a_secret_by_content_keeps_its_other_text_and_one_by_name_nothing(root: Path) -> None:
    files = HiddenFiles(str(root))
    for _ in range(2):  # The second time from memory.
        by_name, by_content = files.seeds(files.found(), "/o")
        assert by_name == Seed(".env", "hidden", b"", None, "/o")
        assert (by_content.path, by_content.kind, by_content.overlay) == ("notes.txt", "hidden", "/o")
        assert b"first = 1" in by_content.content and KEY.encode() not in by_content.content
        assert files.masked == ["notes.txt"]
        (root / "notes.txt").chmod(0o644)
    assert files.seeds([]) == [] and files.masked == []


def test_a_file_that_the_person_sends_is_not_hidden(root: Path) -> None:
    files = HiddenFiles(str(root))
    digest = hashlib.sha256((root / ".env").read_bytes()).hexdigest()
    sent = sent_by_person(str(root), {digest: "send", "x": "mask"})
    assert [one.path for one in files.found((), sent)] == ["notes.txt"]
    assert [one.path for one in files.last((), sent)] == ["notes.txt"]
    assert [one.path for one in files.last(["notes.*"], sent)] == []
    for decisions in ({}, {digest: "mask"}, {"0" * 64: "send"}):
        refused = sent_by_person(str(root), decisions)
        assert [one.path for one in files.last((), refused)] == [".env", "notes.txt"]
    (root / ".env").unlink()
    assert not sent(files.secrets.last[0])


#: Contents of a pending file, its old names, the globs of the person, and the seed that it becomes.
PENDING = [
    ("a.py", b"print(2)\n", {}, (), Seed("a.py", "file", b"print(2)\n")),
    ("a.py", None, {}, (), Seed("a.py", "gone")),
    (".env", b"PASSWORD=other-horse-8\n", {}, (), Seed(".env", "hidden")),
    (".env", b"PASSWORD=other-horse-8\n", {}, (".env",), Seed(".env", "file", b"PASSWORD=other-horse-8\n")),
    (".env", None, {}, (), Seed(".env", "gone")),
    ("x.txt", b"moved and changed\n", {"x.txt": ".env"}, (), Seed("x.txt", "hidden")),
    ("x.txt", b"moved and changed\n", {"x.txt": "y.txt", "y.txt": ".env"}, (), Seed("x.txt", "hidden")),
    ("x.txt", b"moved and changed\n", {"x.txt": "a.py"}, (), Seed("x.txt", "file", b"moved and changed\n")),
    ("x.txt", b"plain\n", {"x.txt": ".env"}, (".env",), Seed("x.txt", "file", b"plain\n")),
    ("x.txt", b"plain\n", {"x.txt": "y.txt", "y.txt": "x.txt"}, (), Seed("x.txt", "file", b"plain\n")),
    ("x.txt", b"PASSWORD=correct-horse-9\n", {}, (), Seed("x.txt", "hidden")),
    (
        ".env.example",
        b"PASSWORD=correct-horse-9\n",
        {},
        (),
        Seed(".env.example", "file", b"PASSWORD=correct-horse-9\n"),
    ),
    ("new.pem", b"anything\n", {}, (), Seed("new.pem", "hidden")),
    ("notes.txt", b"first = 2\n", {}, (), Seed("notes.txt", "file", b"first = 2\n")),
    ("new.txt", TOKEN.encode(), {}, ("new.*",), Seed("new.txt", "file", TOKEN.encode())),
]


@pytest.mark.parametrize(("path", "content", "renamed", "revealed", "seed"), PENDING)
def test_what_a_pending_file_becomes(
    root: Path,
    path: str,
    content: bytes | None,
    renamed: dict[str, str],
    revealed: tuple[str, ...],
    seed: Seed,
) -> None:
    files = HiddenFiles(str(root))
    seeds = files.pending({path: content}, renamed, revealed)
    assert [one for one in seeds if one.path == path] == [seed]
    others = {".env", "notes.txt"} - {path} - set(revealed)
    assert {one.path for one in seeds if one.kind == "hidden" and one.path != path} == others


def test_a_key_in_pending_text_is_masked_and_the_rest_is_there(root: Path) -> None:
    files = HiddenFiles(str(root))
    seeds = {one.path: one for one in files.pending({"new.txt": TOKEN.encode()}, {})}
    assert seeds["new.txt"].kind == "hidden"
    assert b"first = 1" in seeds["new.txt"].content and KEY.encode() not in seeds["new.txt"].content


@pytest.mark.parametrize(
    ("before", "after", "kept"), [("x = 1\n", "y = VALUE\n", False), ("x = VALUE\n", "y = VALUE\n", True)]
)
def test_a_value_is_masked_in_pending_text_unless_the_file_had_one(
    root: Path, before: str, after: str, kept: bool
) -> None:
    (root / "b.py").write_text(before)
    files = HiddenFiles(str(root))
    seeds = files.pending(
        {"b.py": after.encode()}, {}, (), lambda secret: False, lambda text: text.replace("VALUE", "#")
    )
    expected = Seed("b.py", "file", after.encode()) if kept else Seed("b.py", "hidden", b"y = #\n")
    assert [one for one in seeds if one.path == "b.py"] == [expected]


@pytest.mark.parametrize(
    ("count", "size", "fits"), [(3, 5, True), (4, 1, False), (2, 20, True), (2, 21, False), (0, 0, True)]
)
def test_files_of_other_users_are_copied_up_to_a_number_and_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, size: int, fits: bool
) -> None:
    monkeypatch.setattr(hidden_files, "MOST_OWNED", 3)
    monkeypatch.setattr(hidden_files, "MOST_OWNED_BYTES", 40)
    files = HiddenFiles(str(tmp_path))
    others = [(f"f{number}", size) for number in reversed(range(count))]
    monkeypatch.setattr(files.secrets, "others", lambda: others)
    seeds, why = files.owned()
    assert seeds == ([Seed(f"f{number}", "owned") for number in range(count)] if fits else [])
    assert (f"{count} files here" in why) is not fits

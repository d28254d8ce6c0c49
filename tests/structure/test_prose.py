"""`.ci/prose.py`: it counts marked words of added lines in all kinds of prose, and of no others."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from support.repositories import git, repository

SCRIPT = Path(__file__).parents[2] / ".ci" / "prose.py"
ODD = "What nobody told comes by itself"
MOVED = "What else goes, or stands, nobody told"
PLAIN = "Returns the path of a file"
OLD = {
    "tui_agent/one.py": f'"""{ODD}."""\n',
    "docs/guide.md": f"{PLAIN}.\n",
    "tests/moved.py": f"# {MOVED}\n",
}
#: Added text, and the line with its marked words.
COUNTED = {
    "docstring": ("tui_agent/two.py", f'\ndef one():\n    """{ODD}.\n\n    More.\n    """\n', 3),
    "comment": ("tests/two.py", f"x = 1\n# {ODD}\n", 2),
    "message": ("tui_agent/two.py", f'raise Error(\n    "{ODD}"\n)\n', 2),
    "f-string": ("tui_agent/two.py", f'x = 1\nsay(f"{{x}}: {ODD}")\n', 2),
    "document": ("docs/guide.md", f"{PLAIN}.\n{ODD}.\n", 2),
    "document above": ("NEW.md", f"\n{ODD}.\n", 2),
    "comment of settings": ("config/settings.toml", f"# {ODD}\nx = 1\n", 1),
    "prompt": ("config/system-prompt.json", f'{{"text":\n"{ODD}"}}\n', 2),
}
NOT_COUNTED = {
    "code": ("tui_agent/two.py", "what = told(else_=nobody)\nname = 'comes'\n"),
    "data of a test": ("tests/two.py", f'x = "{ODD}"\n'),
    "code in a document": ("docs/guide.md", f"{PLAIN}.\n```\n{ODD}\n```\n`{ODD}`\n"),
    "generated table": ("docs/guide.md", f"<!-- made by make x: y -->\n{ODD}\n<!-- end -->\n"),
    "moved line": ("tests/elsewhere.py", f"    # {MOVED}\n"),
    "old line beside a new one": ("tui_agent/one.py", f'"""{ODD}."""\nx = 1\n'),
    "recorded data": ("tui_agent/rehearsal/project/a.md", f"{ODD}\n"),
    "two words in a small change": ("docs/guide.md", "What else.\n"),
    "a large change": ("docs/guide.md", f"{PLAIN}.\n" * 120 + f"{ODD}.\n"),
}


@pytest.fixture(scope="module")
def prose():
    spec = importlib.util.spec_from_file_location("prose", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return repository(tmp_path_factory.mktemp("prose"), OLD)


def words(prose, folder: Path, path: str, text: str) -> list[tuple[str, int, int]]:
    """(path, line, number of marked words) of a change that also removes `tests/moved.py`."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    (folder / "tests/moved.py").unlink()
    try:
        return [
            (path, line, len(hits))
            for path, line, _, hits in prose.marked(folder, prose.added(folder, "HEAD"))
            if hits
        ]
    finally:
        git(folder, "reset", "-q", "--hard")
        git(folder, "clean", "-qfdx")


@pytest.mark.parametrize(("path", "text", "line"), COUNTED.values(), ids=COUNTED)
def test_marked_words_are_counted_with_their_place(prose, folder: Path, path: str, text: str, line: int):
    assert words(prose, folder, path, text) == [(path, line, 5)]


@pytest.mark.parametrize(("path", "text"), list(NOT_COUNTED.values())[:7], ids=list(NOT_COUNTED)[:7])
def test_code_data_and_old_lines_are_not_counted(prose, folder: Path, path: str, text: str):
    assert words(prose, folder, path, text) == []


def test_the_rate_decides_since_the_last_commit_the_last_tag_or_the_main_branch(
    prose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def checked(folder: Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["prose.py", str(folder)])
        return prose.main(), capsys.readouterr().out

    monkeypatch.delenv("PROSE_BASE", raising=False)
    folder = repository(tmp_path, OLD)
    guide = folder / "docs" / "guide.md"
    assert checked(folder) == (0, "prose: no commit to compare with\n")
    git(folder, "tag", "v1")
    for text, status in (
        (NOT_COUNTED["two words in a small change"][1], 0),
        (NOT_COUNTED["a large change"][1], 0),
        (COUNTED["document"][1], 1),
    ):
        guide.write_text(text)
        git(folder, "commit", "-qam", "Next")
        assert checked(folder)[0] == status, text
    assert "docs/guide.md:2: “What”, “nobody”, “told”, “comes”, “by itself”\n" in checked(folder)[1]
    (folder / "tests" / "two.py").write_text(f"# {PLAIN}\n")
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "Next")
    assert checked(folder)[0] == 1, "the tag is older"
    git(folder, "tag", "v2")
    git(folder, "switch", "-qc", "other")
    for name in ("three", "four"):
        (folder / "tests" / f"{name}.py").write_text(f"# {ODD if name == 'three' else PLAIN}\n")
        git(folder, "add", "--all")
        git(folder, "commit", "-qm", "Next")
    assert "tests/three.py:1: " in checked(folder)[1]

"""Everything that a command writes goes through one place, and nothing dangerous passes it."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path

import pytest

import tui_agent
from tests.support.panes import HOSTILE
from tui_agent.headless import output

PACKAGE = Path(tui_agent.__file__).parent
#: Besides the one place: `--version` on its own, what children answer, and below the screen what its end waits for.
WRITERS = {
    *("headless/output.py", "__main__.py", "processes/serve.py", "ui/run.py"),
    *("files/folder_scan.py", "git/without_secrets.py", "turn/picture_scaler.py", "session/worker.py"),
}


def writes(tree: ast.AST) -> bool:
    """Whether a module calls `print`, `click.echo`, or writes to a standard stream."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("print", "click.echo", "click.secho", "traceback.print_exc"):
                return True
            if name.startswith(
                ("sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer", "sys.stderr.buffer")
            ):
                return True
    return False


def test_nobody_else_writes_to_the_standard_streams() -> None:
    modules = (path for path in PACKAGE.rglob("*.py") if "project" not in path.parts)
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules
        if writes(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found <= WRITERS


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def safe(text: str) -> bool:
    return not set(text) & set("\x1b\x07\u202e\u200b\x9b\r")


@pytest.mark.parametrize(
    "write", [output.write_text, output.row, output.note, output.error, output.json_line]
)
def test_what_is_read_is_clean(write, monkeypatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", out)
    write(f"{HOSTILE}\x9b\r")
    assert safe(out.getvalue())
    assert out.getvalue().count("\n") == 1 + (write is output.write_text)


def test_a_document_is_exact_in_a_file_and_clean_on_a_terminal(monkeypatch) -> None:
    for stream, exact in ((io.StringIO(), True), (Screen(), False)):
        monkeypatch.setattr("sys.stdout", stream)
        output.document(HOSTILE)
        assert (stream.getvalue() == HOSTILE) is exact
        assert safe(stream.getvalue()) is not exact


def test_a_document_in_json_is_safe_everywhere_and_exact(monkeypatch) -> None:
    for stream in (io.StringIO(), Screen()):
        monkeypatch.setattr("sys.stdout", stream)
        output.document(json.dumps([HOSTILE], ensure_ascii=False), is_json=True)
        assert safe(stream.getvalue())
        assert json.loads(stream.getvalue()) == [HOSTILE]

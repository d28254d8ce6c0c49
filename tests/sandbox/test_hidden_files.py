"""Which secret-looking files a view hides, and which the person reveals by a glob."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.sandbox.hidden_files import HiddenFiles


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

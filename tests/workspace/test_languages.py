"""The language of a file follows from its name."""

from __future__ import annotations

import pytest

from tui_agent.workspace.syntax_trees import is_source_extension, language


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b.py", "python"),
        ("A.PY", "python"),
        ("x.test.tsx", "typescript"),
        ("Makefile", "makefile"),
        ("sub/Dockerfile", "dockerfile"),
        ("go.mod", "go"),
        (".bashrc", "bash"),
        ("LICENSE", ""),
        ("py", ""),
        ("a.py/b", ""),
        ("x.unknown", ""),
    ],
)
def test_language(path: str, expected: str) -> None:
    assert language(path) == expected


def test_extensions() -> None:
    assert is_source_extension("PY") and not is_source_extension("com")

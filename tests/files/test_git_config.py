"""git's configuration as git itself reads it, and as it is written for git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tui_agent.files.git_folder import format_config, is_true, parse_config

TEXTS = {
    "sections": '[core]\n\tbare = false\n[Branch "Main"]\n\tRemote = origin\n[a.B]\nc=d\n',
    "same line": "[core] bare = true\n[core]ignorecase\n",
    "no value": "[core]\n  bare\n  ignorecase\n  x =\n",
    "remarks": '# first\n; second\n[a]\n b = c # rest\n d = e;f\n g = "h # i" ; j\n',
    "spaces": '[a]\n\tb =   c  d   \n\te=" f "  \n\tg = h\t\n',
    "escapes": '[a]\n b = "x\\ty\\n\\"z\\\\"\n c = x\\\\y\n d = \\"quoted\\"\n',
    "continued": '[a]\n b = one \\\n two\n c = "x \\\n y"\n',
    "continued with a carriage return": "[a]\r\n b = one \\\r\n two\r\n",
    "half quoted": '[a]\n b = x"  y"z\n c = ""\n',
    "inner section": '[filter "a.b \\"c\\" \\\\d"]\n clean = cat\n',
    "mark": "\ufeff[a]\n b = c\n",
    "twice": "[a]\n b = 1\n b = 2\n",
    "the end of the file": "[a]\n b = c\\",
    "empty": "",
}
BROKEN = [
    "[a\n",
    "[a]\n 1b = c\n",
    '[a]\n b = "c\n',
    "[a]\n b = \\q\n",
    "[a]\n b c\n",
    "[a]\n b ; c\n",
    "[a b]\n",
]


def as_git_reads(path: Path) -> list[tuple[str, str]] | None:
    done = subprocess.run(
        ["git", "config", "--file", str(path), "--list", "-z"], capture_output=True, check=False
    )
    if done.returncode:
        return None
    lines = [line.decode() for line in done.stdout.split(b"\0") if line]
    return [(key, value if sign else "true") for key, sign, value in (line.partition("\n") for line in lines)]


@pytest.mark.parametrize("name", TEXTS)
def test_values_are_those_that_git_reads(tmp_path: Path, name: str) -> None:
    path = tmp_path / "config"
    path.write_bytes(TEXTS[name].encode())
    expected = as_git_reads(path)
    assert expected is not None and list(parse_config(TEXTS[name])) == expected
    path.write_bytes(format_config(expected))
    assert as_git_reads(path) == expected, "written again, they are the same"


@pytest.mark.parametrize("text", BROKEN)
def test_a_file_that_git_refuses_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    assert as_git_reads(tmp_path / "config") is None
    with pytest.raises(ValueError, match=r"an? "):
        parse_config(text)


def test_the_words_for_true() -> None:
    assert [is_true(word) for word in ("true", "Yes", "on", "1", "false", "no", "0", "", "2")] == (
        [True] * 4 + [False] * 5
    )

"""Plain English in the lines that a change adds, part of `make check`.

    prose.py [ROOT]     prints each marked word with its place, then the rate; exits 1 if the rate is too high

Counts marked words in docstrings, comments, messages (strings of the package with three words or more), documents and
configuration. Lines are compared with the base: `PROSE_BASE`, or the merge base with the main branch, or on that branch
the last tag or else the last commit but one. Uncommitted and untracked text is included. Lines that were only moved are
not counted.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

#: Marked words allowed per 1,000 words, and the number that a change of any size may have.
RATE, ALWAYS = 8, 2
PACKAGE = "tui_agent/"
#: Text that people read. Recorded replies and sample projects are data.
READ = (PACKAGE, "tests/", ".ci/", "config/", "themes/", "docs/")
DATA = (f"{PACKAGE}rehearsal/project/", f"{PACKAGE}model/models.json", "tests/snapshots/")
#: Words of sentences that describe around a thing. Reference manuals and model code bases have 0.6 to 4 in 1,000 words.
MARKED = re.compile(
    r"\b(?:what|nobody|somebody|anybody|told|tells?|meanwhile|so many|else|letters?|ones|comes?|came|goes|stands?"
    r"|stood|looks? at|looked at|may be|by itself|of it|where it is)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z][A-Za-z']*")
_HUNK = re.compile(r"@@ -\S+ \+(\d+)")
#: Generated tables, and text in backticks, which is code.
_GENERATED = re.compile(r"<!-- made by .*?<!-- end -->|^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_STRINGS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))

#: The text of a file by line number, without its code.
Lines = dict[int, str]


def base(root: Path) -> str:
    """The commit to compare with; "" if there is none, as in a shallow clone or an unpacked archive."""
    head = _git(root, "rev-parse", "HEAD")
    for name in filter(None, (os.environ.get("PROSE_BASE"), "origin/main", "main")):
        found = _git(root, "merge-base", "HEAD", name)
        if found and found != head:
            return found
    tag = _git(root, "describe", "--tags", "--abbrev=0", "HEAD~1")
    return tag or _git(root, "rev-parse", "--verify", "--quiet", "HEAD~1")


def added(root: Path, since: str) -> dict[str, set[int]]:
    """Numbers of the lines that were added, by path. Moved lines are left out."""
    found: dict[str, dict[int, str]] = {}
    removed: set[str] = set()
    path, number = "", 0
    for line in _git(root, "diff", "-U0", "-M", "--no-ext-diff", "--no-color", since).splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ ").removeprefix("b/").rstrip("\t")
        elif hunk := _HUNK.match(line):
            number = int(hunk[1])
        elif line.startswith("-") and not line.startswith("--- "):
            removed.add(line[1:].strip())
        elif line.startswith("+"):
            found.setdefault(path, {})[number] = line[1:].strip()
            number += 1
    for path in filter(_is_read, _git(root, "ls-files", "--others", "--exclude-standard").splitlines()):
        text = (root / path).read_text("utf-8", errors="replace")
        found[path] = {number: line.strip() for number, line in enumerate(text.splitlines(), 1)}
    return {
        path: {number for number, line in lines.items() if line not in removed}
        for path, lines in found.items()
        if _is_read(path)
    }


def _is_read(path: str) -> bool:
    return (path.startswith(READ) or "/" not in path) and not path.startswith(DATA)


def prose(path: str, text: str) -> Lines:
    """The parts of a file that people read; {} for a kind of file that is not prose."""
    if path.endswith(".py") or text.startswith("#!/usr/bin/env python"):
        return _python(text, messages=path.startswith(PACKAGE))
    if path.endswith(".md"):
        plain = _GENERATED.sub(lambda part: "\n" * part[0].count("\n"), text)
        return {number: _CODE.sub("", line) for number, line in enumerate(plain.splitlines(), 1)}
    if path.endswith((".toml", ".sh")) or path in ("Makefile", ".ci/check", ".ci/run", ".ci/set-up"):
        split = ((number, line.partition("#")) for number, line in enumerate(text.splitlines(), 1))
        return {number: _CODE.sub("", comment) for number, (_, mark, comment) in split if mark}
    if path.startswith("config/"):
        return dict(enumerate(text.splitlines(), 1))
    return {}


def _python(text: str, *, messages: bool) -> Lines:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # ruff reports it
        return {}
    docstrings = {
        node.body[0].lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
    }
    found: Lines = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_string = token.type in _STRINGS
        is_message = is_string and messages and len(_WORD.findall(_CODE.sub("", token.string))) >= 3
        if token.type == tokenize.COMMENT or is_message or (is_string and token.start[0] in docstrings):
            for number, line in enumerate(token.string.splitlines(), token.start[0]):
                found[number] = f"{found.get(number, '')} {_CODE.sub('', line)}"
    return found


def _git(root: Path, *arguments: str) -> str:
    """Output of git, or "" if it fails."""
    command = ["git", "-c", "core.quotePath=off", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""


def marked(root: Path, changed: dict[str, set[int]]) -> Iterator[tuple[str, int, int, list[str]]]:
    """(path, line number, number of words, marked words) for each added line of prose."""
    for path, numbers in sorted(changed.items()):
        if not (root / path).is_file():
            continue
        lines = prose(path, (root / path).read_text("utf-8", errors="replace"))
        for number in sorted(numbers & lines.keys()):
            yield path, number, len(_WORD.findall(lines[number])), MARKED.findall(lines[number])


def main() -> int:
    root = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parents[1]
    since = base(root)
    if not since:
        sys.stdout.write("prose: no commit to compare with\n")
        return 0
    found = list(marked(root, added(root, since)))
    words = sum(count for _, _, count, _ in found)
    hits = sum(len(hits) for *_, hits in found)
    if hits <= max(ALWAYS, RATE * words / 1000):
        sys.stdout.write(f"prose: {words} words added since {since[:12]}, {hits} marked\n")
        return 0
    for path, number, _, names in found:
        if names:
            sys.stdout.write(f"{path}:{number}: {', '.join(f'“{name}”' for name in names)}\n")
    rate = 1000 * hits / words
    sys.stdout.write(
        f"prose: {rate:.1f} marked words per 1,000 added since {since[:12]}, {RATE} allowed: rewrite the sentences\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())

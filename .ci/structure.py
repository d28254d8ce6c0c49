"""The tree's limits and its plain English, part of `make check`: there is no list of exemptions.

    structure.py [ROOT]     prints each offence with its place, then the counts; 1 where there is any

No file over 600 lines, no class over 25 public methods (inherited ones of ours counted), no public class name twice,
no import cycle inside the package, however late the import, and no turn of phrase from the word list in a string, a
docstring, a comment or a document. Read as text: nothing is imported.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "tui_agent"
#: The rehearsal's sample project, which belongs to nobody's tree.
SAMPLE = f"{PACKAGE}/rehearsal/project"
LINES, METHODS = 600, 25
#: Turns of phrase that plain English does without: negated nouns, old-fashioned adverbs, verbs for “is”.
WORDS = re.compile(
    r"""\b(?:anew|of\ late|for\ ever|to\ the\ letter|gone\ on\ with|shall
    |(?<!there\ )(?:is|are)\ no\ (?!longer\b|more\b)\w+
    |what\ stands|stands\ in|stand\ in\ the|takes?\ it\ back|found\ no\ place|no\ place\ for\ it)\b""",
    re.IGNORECASE | re.VERBOSE,
)
DOCUMENTS = ("*.md", "docs/*.md", "config/*", "themes/*", "tests/*.md")
#: What is read by people; the text of an f-string is a kind of its own since Python 3.12.
TEXTS = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))

Trees = dict[str, ast.Module]


def trees(root: Path) -> Trees:
    """Each module of the package, by its path below the root."""
    paths = (path.relative_to(root).as_posix() for path in sorted((root / PACKAGE).rglob("*.py")))
    return {
        path: ast.parse((root / path).read_text("utf-8")) for path in paths if not path.startswith(SAMPLE)
    }


def long_files(root: Path, modules: Trees) -> Iterator[str]:
    for path in modules:
        lines = (root / path).read_text("utf-8").count("\n")
        if lines > LINES:
            yield f"{path}: {lines} lines, {LINES} are allowed"


def classes(modules: Trees) -> Iterator[tuple[str, ast.ClassDef]]:
    for path, tree in modules.items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def wide_classes(modules: Trees) -> Iterator[str]:
    bodies = {node.name: node for _, node in classes(modules)}

    def methods(name: str, seen: frozenset[str]) -> set[str]:
        if name in seen or name not in bodies:
            return set()
        found = {
            item.name
            for item in bodies[name].body
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not item.name.startswith("_")
        }
        for base in bodies[name].bases:
            base = base.value if isinstance(base, ast.Subscript) else base
            found |= methods(getattr(base, "id", getattr(base, "attr", "")), seen | {name})
        return found

    for path, node in classes(modules):
        count = len(methods(node.name, frozenset()))
        if count > METHODS:
            yield f"{path}:{node.lineno}: {node.name} has {count} public methods, {METHODS} are allowed"


def twin_classes(modules: Trees) -> Iterator[str]:
    places = defaultdict(list)
    for path, node in classes(modules):
        if not node.name.startswith("_"):
            places[node.name].append(f"{path}:{node.lineno}")
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"{found[0]}: {name} is also the name of a class in {', '.join(found[1:])}"


def cycles(modules: Trees) -> Iterator[str]:
    """Groups of modules each of which imports, by whatever way, every other."""
    names = {_module(path): path for path in modules}
    graph = {name: _imports(modules[path], names) - {name} for name, path in names.items()}
    reached = {name: _reachable(name, graph) for name in graph}
    told: set[str] = set()
    for name in graph:
        ring = sorted(other for other in reached[name] if name in reached[other])
        if ring and name not in told:
            told |= set(ring)
            yield f"{names[name]}: imports itself by way of {', '.join(one for one in ring if one != name)}"


def words(root: Path, modules: Trees) -> Iterator[str]:
    for path in modules:
        text = (root / path).read_text("utf-8")
        if next(_offences(path, 1, text), None):
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type in TEXTS:
                    yield from _offences(path, token.start[0], token.string)
    for pattern in DOCUMENTS:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                text = path.read_text("utf-8", errors="replace")
                yield from _offences(path.relative_to(root).as_posix(), 1, text)


def _offences(path: str, line: int, text: str) -> Iterator[str]:
    flat = re.sub(r"\s", " ", text)
    for match in WORDS.finditer(flat):
        around = flat[max(0, match.start() - 30) : match.end() + 30].strip()
        yield f"{path}:{line + text.count(chr(10), 0, match.start())}: “{match.group()}” in “{around}”"


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(tree: ast.Module, names: dict[str, str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            wholes = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {whole if whole in names else node.module for whole in wholes}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & names.keys()


def _reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    left = list(graph[start])
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += graph[name]
    return seen


def main(root: Path) -> int:
    modules = trees(root)
    offences = {
        f"files over {LINES} lines": list(long_files(root, modules)),
        f"classes over {METHODS} public methods": list(wide_classes(modules)),
        "public class names that occur twice": list(twin_classes(modules)),
        "import cycles": list(cycles(modules)),
        "hits of the word list": list(words(root, modules)),
    }
    for found in offences.values():
        for offence in found:
            sys.stdout.write(f"{offence}\n")
    counts = ", ".join(f"{len(found)} {what}" for what, found in offences.items())
    sys.stdout.write(f"{len(modules)} modules: {counts}\n")
    return int(any(offences.values()))


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:2]).resolve()))

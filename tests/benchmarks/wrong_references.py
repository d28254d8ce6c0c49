"""References to files made the way a model gets them wrong, and the chains that the prompt's strategy makes of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_agent.workspace.syntax_trees import is_source_extension

#: Not every file can be got wrong in every way: so many are tried.
TRIES = 50
#: In what share each kind is drawn: half of the references are right, the rest are wrong in these ways.
MIX = {
    "right": 30,
    "wrong folder": 20,
    "wrong case": 10,
    "wrong extension": 10,
    "part of the name": 12,
    "plural or singular": 8,
    "module path": 10,
}
EXTENSIONS = {
    "py": ("pyi", "pyx"),
    "js": ("ts", "mjs"),
    "ts": ("js", "tsx"),
    "css": ("scss",),
    "json": ("jsonc", "yaml"),
    "md": ("rst", "txt"),
    "html": ("htm", "jinja"),
}
MODULE = re.compile(r"\w+(?:\.\w+)+")
FOLDERS = ("src", "lib", "app", "core", "utils", "common", "internal")


@dataclass(frozen=True)
class Reference:
    """What a model wrote where it meant `meant`."""

    kind: str
    written: str
    meant: str


def references(paths: Sequence[str], count: int, seed: int) -> list[Reference]:
    """So many references to files of `paths`, by the fixed mix."""
    chance, there = random.Random(seed), set(paths)
    kinds = chance.choices(list(MIX), list(MIX.values()), k=count)
    made = []
    for kind in kinds:
        for _ in range(TRIES):
            meant = chance.choice(paths)
            written = _KINDS[kind](meant, paths, chance)
            if (
                kind == "right" or written not in there
            ):  # what names another file is no wrong reference to this one
                made.append(Reference(kind, written, meant))
                break
    return made


def chain(written: str) -> tuple[str, ...]:
    """Patterns as the planner's prompt asks for them: path, name anywhere, folder, part of the name, extension.

    A module is written as its file, as the prompt asks too.
    """
    if MODULE.fullmatch(written) and not is_source_extension(written.rpartition(".")[2]):
        path = written.replace(".", "/")
        return f"{path}.py", f"{path}/__init__.py", f"**/{path.rpartition('/')[2]}.py"
    folder, _, name = written.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    stem = stem or name
    patterns = [written, f"**/{name}"]
    patterns += [f"{folder}/*"] if folder else []
    patterns += [f"**/*{stem}*"]
    patterns += [f"**/*.{extension}"] if dot else []
    return tuple(dict.fromkeys(patterns))


def _wrong_folder(path: str, paths: Sequence[str], chance: random.Random) -> str:
    """A folder forgotten, one too many, another one of the project's, or one that projects often have."""
    *folders, name = path.split("/")
    place = chance.randrange(len(folders)) if folders else 0
    match chance.choice(("forgotten", "added", "other", "none")):
        case "forgotten" if len(folders) > 1:
            folders.pop(place)
        case "other":
            folders = chance.choice(paths).split("/")[:-1]
        case "none":
            folders = []
        case _:
            folders.insert(place, chance.choice(FOLDERS))
    return "/".join((*folders, name))


def _wrong_case(path: str, paths: Sequence[str], chance: random.Random) -> str:
    """The name as another language would write it."""
    folder, slash, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", stem)]
    if not words:
        return path
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    spelled = [camel, camel[:1].upper() + camel[1:], "_".join(words), "-".join(words)]
    others = [spelling for spelling in dict.fromkeys(spelled) if spelling != stem]
    return folder + slash + chance.choice(others or [stem]) + dot + extension


def _wrong_extension(path: str, paths: Sequence[str], chance: random.Random) -> str:
    stem, dot, extension = path.rpartition(".")
    others = EXTENSIONS.get(extension)
    return f"{stem}{dot}{chance.choice(others)}" if dot and others else path


def _part_of_name(path: str, paths: Sequence[str], chance: random.Random) -> str:
    """One or more of the words that a name is made of, the telling ones."""
    folder, slash, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    words = [word for word in re.split(r"[_\-.]", stem) if len(word) > 2]
    if len(words) < 2:
        return path
    kept = words[1:] if chance.random() < 0.5 or words[:-1] == ["test"] else words[:-1]
    joint = next((sign for sign in "_-." if sign in stem), "_")
    return folder + slash + joint.join(kept) + dot + extension


def _plural(path: str, paths: Sequence[str], chance: random.Random) -> str:
    folder, slash, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    other = stem[:-1] if stem.endswith("s") and len(stem) > 3 else stem + "s"
    return folder + slash + other + dot + extension if stem and stem[-1].isalpha() else path


def _module_path(path: str, paths: Sequence[str], chance: random.Random) -> str:
    """`a.b.c` for `a/b/c.py`, with or without the package in front."""
    stem, _, extension = path.rpartition(".")
    if extension != "py":
        return path
    parts = stem.split("/")
    parts = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
    return ".".join(parts)


_KINDS: dict[str, Callable[[str, Sequence[str], random.Random], str]] = {
    "right": lambda path, paths, chance: path,
    "wrong folder": _wrong_folder,
    "wrong case": _wrong_case,
    "wrong extension": _wrong_extension,
    "part of the name": _part_of_name,
    "plural or singular": _plural,
    "module path": _module_path,
}

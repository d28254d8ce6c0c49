"""Random source files and random edits of them, for proofs that an edit is placed right or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

NOUNS = (
    "user",
    "order",
    "token",
    "cache",
    "path",
    "node",
    "price",
    "batch",
    "event",
    "route",
    "index",
    "limit",
)
VERBS = ("load", "save", "parse", "render", "find", "merge", "check", "send", "count", "update")


@dataclass(frozen=True)
class Hunk:
    """Lines from `start` (from 0) on: `old` gives way to `new`."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.old)


@dataclass(frozen=True)
class Case:
    """A file and what is to become of it; `lines` are without endings; `ended`: the last has one too."""

    path: str
    lines: tuple[str, ...]
    hunks: tuple[Hunk, ...]
    ending: str = "\n"
    ended: bool = True

    @property
    def wanted_lines(self) -> list[str]:
        result: list[str] = []
        at = 0
        for hunk in self.hunks:
            result += [*self.lines[at : hunk.start], *hunk.new]
            at = hunk.end
        return [*result, *self.lines[at:]]

    @property
    def base(self) -> str:
        return self.text(self.lines)

    @property
    def wanted(self) -> str:
        return self.text(self.wanted_lines)

    def text(self, lines: tuple[str, ...] | list[str]) -> str:
        return self.ending.join(lines) + (self.ending if self.ended and lines else "")


def name(draw: Random) -> str:
    return f"{draw.choice(VERBS)}_{draw.choice(NOUNS)}{draw.choice(('', '', 's', f'_{draw.randrange(12)}'))}"


def _word(draw: Random) -> str:
    return draw.choice((draw.choice(NOUNS), name(draw), f"{draw.choice(NOUNS)}_{draw.choice(NOUNS)}"))


def _value(draw: Random) -> str:
    return draw.choice(
        (
            str(draw.randrange(200)),
            f"{draw.randrange(3)}.{draw.randrange(10)}.{draw.randrange(10)}",
            f'"{_word(draw)}"',
            f"'{_word(draw)} - {draw.randrange(9)}'",
            f"{name(draw)}({_word(draw)}, {draw.randrange(9)})",
            f"{_word(draw)} + {draw.randrange(30)}",
        )
    )


def _python(draw: Random, depth: int = 0) -> list[str]:
    pad = "    " * depth
    lines: list[str] = []
    for _ in range(draw.randrange(1, 4)):
        lines.append(f"{pad}def {name(draw)}({_word(draw)}, {_word(draw)}):")
        for _ in range(draw.randrange(1, 6)):
            lines += _statement(draw, pad + "    ", "#")
        lines += draw.choice(([""], ["", ""], []))
    return lines if depth else ["import os", f"import {_word(draw)}", "", *lines]


def _statement(draw: Random, pad: str, remark: str) -> list[str]:
    kind = draw.randrange(6)
    if kind == 0:
        return [f"{pad}{remark} {draw.choice(VERBS)} the {_word(draw)} - then the {_word(draw)}"]
    if kind == 1:
        return [f"{pad}if {_word(draw)} > {draw.randrange(99)}:", f"{pad}    {_word(draw)} = {_value(draw)}"]
    if kind == 2:
        return [f"{pad}return {_value(draw)}"]
    if kind == 3:
        return ["", f"{pad}{_word(draw)}.{name(draw)}({_value(draw)})"]
    return [f"{pad}{_word(draw)} = {_value(draw)}"]


def _braces(draw: Random, pad: str = "  ", word: str = "function") -> list[str]:
    lines: list[str] = []
    end = ";" if word == "function" else ""
    for _ in range(draw.randrange(1, 4)):
        lines.append(f"{word} {name(draw)}({_word(draw)}) {{")
        for _ in range(draw.randrange(1, 5)):
            if draw.random() < 0.3:
                lines += [
                    f"{pad}if ({_word(draw)} > {draw.randrange(50)}) {{",
                    f"{pad * 2}{name(draw)}({_value(draw)}){end}",
                    f"{pad}}}",
                ]
            elif draw.random() < 0.2:
                lines.append(f"{pad}// {draw.choice(VERBS)} the {_word(draw)}")
            else:
                lines.append(f"{pad}{_word(draw)} = {_value(draw)}{end}")
        lines += ["}", ""]
    return lines


def _yaml(draw: Random) -> list[str]:
    lines: list[str] = []
    for _ in range(draw.randrange(1, 5)):
        lines.append(f"{_word(draw)}:")
        lines += [f"  {_word(draw)}: {_value(draw)}" for _ in range(draw.randrange(1, 4))]
        if draw.random() < 0.5:
            lines += [f"  {_word(draw)}:", *(f"    - {_word(draw)}" for _ in range(draw.randrange(1, 4)))]
    return lines


def _markdown(draw: Random) -> list[str]:
    lines: list[str] = []
    for _ in range(draw.randrange(1, 4)):
        lines += [f"{'#' * draw.randrange(1, 4)} The {_word(draw)}", ""]
        for _ in range(draw.randrange(1, 4)):
            words = " ".join(_word(draw) for _ in range(draw.randrange(3, 9)))
            lines.append(
                draw.choice(
                    (f"- {words}", f"{words} - it's {_value(draw)}.", f"{draw.randrange(1, 9)}. {words}")
                )
            )
        lines.append("")
    return lines


def _makefile(draw: Random) -> list[str]:
    lines = [f"{_word(draw).upper()} := {_value(draw)}", ""]
    for _ in range(draw.randrange(1, 4)):
        lines += [
            f"{_word(draw)}: {_word(draw)}",
            *(f"\t@{name(draw)} --{_word(draw)} {_value(draw)}" for _ in range(draw.randrange(1, 4))),
            "",
        ]
    return lines


def _alike(draw: Random) -> list[str]:
    """Long lines of which each is much like the others."""
    word, other = _word(draw), _word(draw)
    return [
        f"    {word}_{number} = compute_the_{other}(argument_{number}, other_argument={number % 5}, default=None)"
        for number in range(draw.randrange(4, 14))
    ]


_KINDS: dict[str, Callable[[Random], list[str]]] = {
    "src/main.py": _python,
    "src/more.py": lambda draw: [f"class {_word(draw).title()}:", *_python(draw, 1)],
    "web/app.js": _braces,
    "cmd/main.go": lambda draw: ["package main", "", *_braces(draw, "\t", "func")],
    "conf/site.yaml": _yaml,
    "docs/guide.md": _markdown,
    "Makefile": _makefile,
    "src/table.py": _alike,
}


def case(draw: Random, twins: bool = False) -> Case:
    """A file with an edit of one to three places. With `twins` the lines around the first stand in it twice."""
    path = draw.choice(sorted(_KINDS))
    lines = _KINDS[path](draw)
    for _ in range(draw.randrange(3)):
        lines += _KINDS[path](draw)
    if draw.random() < 0.3:
        lines += lines[: draw.randrange(1, 8)]
    if twins and lines:
        start = draw.randrange(len(lines))
        lines = [*lines, *lines[max(0, start - 4) : start + 8], f"{name(draw)} = {_value(draw)}"]
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    return Case(
        path,
        tuple(lines),
        _hunks(draw, lines, path),
        "\r\n" if draw.random() < 0.12 else "\n",
        draw.random() > 0.12,
    )


def _hunks(draw: Random, lines: list[str], path: str) -> tuple[Hunk, ...]:
    found: list[Hunk] = []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        start = draw.randrange(len(lines))
        old, new = _change(draw, lines, start, path)
        hunk = Hunk(start, tuple(old), tuple(new))
        if old != new and all(hunk.end + 1 < one.start or one.end + 1 < hunk.start for one in found):
            found.append(hunk)
    return tuple(sorted(found, key=lambda hunk: hunk.start)) or (
        Hunk(0, (lines[0],), (f"{lines[0]} {name(draw)}",)),
    )


def _change(draw: Random, lines: list[str], start: int, path: str) -> tuple[list[str], list[str]]:
    count = draw.choice((1, 1, 1, 2, 3))
    old = lines[start : start + count]
    pad = old[0][: len(old[0]) - len(old[0].lstrip())]
    deeper = (
        "\t" if path.endswith((".go", "Makefile")) else "  " if path.endswith((".js", ".yaml")) else "    "
    )
    fresh = [f"{pad}{name(draw)}_new = {_value(draw)}" for _ in range(draw.randrange(1, 4))]
    match draw.randrange(6):
        case 0:
            return old, [_renamed(draw, line) for line in old]
        case 1:
            return [], fresh
        case 2 if len(lines) > 3:
            return old, []
        case 3 if old[0].strip():
            nested = [f"{pad}when {_word(draw)}:", *(deeper + line if line.strip() else line for line in old)]
            return old, nested
        case 4:
            return old, [*old, *fresh]
        case _:
            return old, fresh


def _renamed(draw: Random, line: str) -> str:
    """The line with one of its words another."""
    words = line.split(" ")
    at = [number for number, word in enumerate(words) if any(char.isalnum() for char in word)]
    if not at:
        return f"{line}{name(draw)}"
    number = draw.choice(at)
    words[number] = f"{name(draw)}{draw.choice(('', '()', ':'))}"
    return " ".join(words)

"""Markdown from outside as lines of styled text; nothing in it can be followed by accident.

What a parser could choke on (deep nesting, thousands of brackets, endless lines) is shown as the plain text that it
is, and a line says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct
from pygments.token import Token as Kind
from rich.cells import cell_len
from textual.content import Content, Span
from textual.highlight import HighlightTheme, highlight

from tui_agent.files.visible import clean

#: Levels of quotes and lists inside each other, two for a list; deeper text is shown plain.
MOST_NESTED = 40
#: Signs in one paragraph that a parser has to pair, and characters in one line.
MOST_SIGNS = 2_000
MOST_IN_LINE = 10_000
#: Characters of a line that are wrapped and drawn together.
MOST_TOGETHER = 3_000
#: Of one message so much is drawn.
MOST_LINES = 5_000
MOST_CHARACTERS = 400_000
#: Longer code is not coloured.
MOST_COLOURED = 20_000
MOST_CELL = 60

TOO_DEEP = "Shown as plain text: its Markdown is nested too deeply or too long to be drawn."
TOO_LONG = "The rest of this message is not drawn; copy it, or read it with `tui-agent sessions show`."

_SIGNS = re.compile(r"[\[\]*_`~<&!|\\]")
_BULLETS = "•◦▪‣"
_STYLES = {"em": "italic", "strong": "bold", "s": "strike", "link": "underline"}
_HEADING = {"h1": "bold $syntax-heading", "h2": "bold $syntax-heading"}
_CODE = "$syntax-string on $surface-raised"


class TextLine(Struct, frozen=True):
    """One line before it is wrapped; `code` has a ground of its own."""

    content: Content
    code: bool = False


class Drawn(Struct, frozen=True):
    """A text as lines. The first `settled` of them come from the first `read` characters, whatever is added below."""

    text: str
    lines: tuple[TextLine, ...]
    read: int = 0
    settled: int = 0


class PygmentsColours(HighlightTheme):
    """Pygments' tokens by the palette's meanings."""

    STYLES: dict[tuple[str, ...], str] = {  # noqa: RUF012 — as its base declares it
        Kind.Comment: "$syntax-comment italic",
        Kind.Keyword: "$syntax-keyword",
        Kind.Keyword.Constant: "$syntax-constant",
        Kind.Literal.Number: "$syntax-number",
        Kind.Literal.String: "$syntax-string",
        Kind.Name.Builtin: "$syntax-function",
        Kind.Name.Class: "$syntax-type",
        Kind.Name.Decorator: "$syntax-function",
        Kind.Name.Function: "$syntax-function",
        Kind.Name.Tag: "$syntax-keyword",
        Kind.Name.Attribute: "$syntax-constant",
        Kind.Operator: "$syntax-operator",
        Kind.Operator.Word: "$syntax-keyword",
        Kind.Generic.Inserted: "$added",
        Kind.Generic.Deleted: "$removed",
        Kind.Generic.Heading: "$syntax-heading",
    }


def draw(text: str, *, parsed: bool = True, growing: bool = False, before: Drawn | None = None) -> Drawn:
    """The text as lines; for a thread where it is long, since that takes time in proportion to its length.

    Of a text that is `growing`, code that is not complete has no colours yet. `before` is what was drawn of its
    beginning: the blocks that were complete are kept.
    """
    text = clean(text)
    notes = []
    if len(text) > MOST_CHARACTERS or text.count("\n") >= MOST_LINES:
        text = "\n".join(text[:MOST_CHARACTERS].split("\n")[:MOST_LINES])
        notes.append(TOO_LONG)
    if before is None or not text.startswith(before.text[: before.read]):
        before = Drawn("", ())
    rest = text[before.read :]
    tokens = _tokens(rest) if parsed else None
    settled, read = before.lines[: before.settled], before.read
    if tokens is None:
        notes += [TOO_DEEP] if parsed else []
        lines = [TextLine(part) for line in text.split("\n") for part in _cut(Content(line))]
    else:
        if growing:
            complete = _last_block(tokens)
            settled += tuple(_Drawing(tokens[:complete], after=bool(settled)).lines())
            tokens = tokens[complete:]
            read += _offset(rest, tokens[0].map[0] if tokens and tokens[0].map else 0)
        lines = [*settled, *_Drawing(tokens, after=bool(settled), coloured=not growing).lines()]
    if len(lines) > MOST_LINES:
        lines = lines[:MOST_LINES]
        notes = [*(note for note in notes if note != TOO_LONG), TOO_LONG]
    lines += [TextLine(Content.styled(note, "$muted")) for note in notes]
    return Drawn(text, tuple(lines), read, len(settled))


def _last_block(tokens: Sequence[Token]) -> int:
    """Where the last block begins that is in no other."""
    return next(
        (at for at in range(len(tokens) - 1, -1, -1) if tokens[at].level == 0 and tokens[at].nesting >= 0), 0
    )


def _offset(text: str, line: int) -> int:
    """Where a line begins."""
    at = 0
    for _ in range(line):
        at = text.index("\n", at) + 1
    return at


def _tokens(text: str) -> list[Token] | None:
    """The blocks of the text; None where it is too deep or too dense to be parsed in good time."""
    if any(len(line) > MOST_IN_LINE for line in text.split("\n")):
        return None
    if any(len(_SIGNS.findall(part)) > MOST_SIGNS for part in re.split(r"\n[ \t]*\n", text)):
        return None
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MOST_NESTED}).enable(
        ["table", "strikethrough"]
    )
    tokens = parser.parse(text)
    if any(token.level >= MOST_NESTED - 1 for token in tokens):
        return None  # the parser leaves out what is deeper
    return tokens


def _cut(line: Content) -> Iterator[Content]:
    """A line in parts that are wrapped and drawn on their own."""
    if len(line) <= MOST_TOGETHER:
        yield line
        return
    for at in range(0, len(line), MOST_TOGETHER):
        yield line[at : at + MOST_TOGETHER]


class _Drawing:
    """Goes through the blocks once and gives their lines, each behind the marks of the quotes and lists it is in."""

    def __init__(self, tokens: Sequence[Token], *, after: bool = False, coloured: bool = True) -> None:
        """`after`: other blocks come before these."""
        self._tokens = iter(tokens)
        self._coloured = coloured
        self._marks: list[str] = []  # before each line, from the outside in
        self._first: list[str] = []  # the same for the next line only: bullets and numbers
        self._lists: list[int | None] = []  # the number of the next item, None where items have none
        self._style = ""
        self._gap: int | None = 0 if after else None  # an empty line is due, behind so many of the marks
        self._begun = after

    def lines(self) -> Iterator[TextLine]:
        for token in self._tokens:
            match token.type:
                case "blockquote_open":
                    self._enter("▏ ", "▏ ")
                case "bullet_list_open":
                    self._lists.append(None)
                case "ordered_list_open":
                    self._lists.append(int(token.attrs.get("start", 1)))
                case "list_item_open":
                    self._enter_item()
                case "blockquote_close" | "list_item_close":
                    if self._first[-1] != self._marks[-1]:
                        yield from self._put([Content()])  # an item with nothing in it
                    self._marks.pop()
                    self._first.pop()
                    self._end_block(token.type == "blockquote_close")
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                    self._end_block(not self._lists)
                case "heading_open":
                    self._style = _HEADING.get(token.tag, "bold")
                    self._end_block()
                case "heading_close":
                    self._style = ""
                    self._end_block()
                case "paragraph_close":
                    self._end_block(not token.hidden)
                case "inline":
                    yield from self._put(_styled(token, self._style).split("\n"))
                case "fence" | "code_block":
                    yield from self._put(_code(token, self._coloured).split("\n"), code=True)
                    self._end_block()
                case "hr":
                    yield from self._put([Content.styled("─" * 24, "$faint")])
                    self._end_block()
                case "table_open":
                    yield from self._put(self._table())
                    self._end_block()

    def _end_block(self, spaced: bool = True) -> None:
        if spaced:
            self._gap = len(self._marks) if self._gap is None else min(self._gap, len(self._marks))

    def _enter(self, first: str, later: str) -> None:
        self._first.append(first)
        self._marks.append(later)

    def _enter_item(self) -> None:
        number = self._lists[-1]
        if number is None:
            mark = f"{_BULLETS[(self._lists.count(None) - 1) % len(_BULLETS)]} "
        else:
            mark = f"{number}. "
            self._lists[-1] = number + 1
        self._enter(mark, " " * len(mark))

    def _put(self, contents: Sequence[Content], code: bool = False) -> Iterator[TextLine]:
        if self._gap is not None and self._begun:
            yield TextLine(Content.styled("".join(self._marks[: self._gap]).rstrip(), "$faint"))
        self._gap, self._begun = None, True
        for content in contents:
            marks = Content.styled("".join(self._first), "$faint")
            self._first = list(self._marks)
            if code and self._marks:
                content = content.stylize("on $surface-raised")
            for part in _cut(marks + content):
                yield TextLine(part, code and not self._marks)

    def _table(self) -> list[Content]:
        """The rows up to the end of the table, in columns."""
        rows: list[list[Content]] = []
        for token in self._tokens:
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(_styled(token, "" if len(rows) > 1 else "bold"))
        across = max(map(len, rows))
        widths = [
            min(MOST_CELL, max(cell_len(row[at].plain) if at < len(row) else 0 for row in rows))
            for at in range(across)
        ]
        edge = Content.styled(" │ ", "$faint")
        lines = [
            edge.join(
                [row[at].pad_right(max(0, widths[at] - cell_len(row[at].plain))) for at in range(len(row))]
            )
            for row in rows
        ]
        return [lines[0], Content.styled("─┼─".join("─" * width for width in widths), "$faint"), *lines[1:]]


def _styled(token: Token, style: str = "") -> Content:
    """The words of one paragraph, heading or cell. Entities are decoded by now, so the text is cleaned once more."""
    words: list[str] = []
    spans: list[Span] = []
    open_at: list[tuple[str, int]] = []
    links: list[str] = []
    length = 0

    def add(text: str, style: str = "") -> None:
        nonlocal length
        text = clean(text)
        words.append(text)
        if style:
            spans.append(Span(length, length + len(text), style))
        length += len(text)

    for child in token.children or ():
        kind, _, end = child.type.rpartition("_")
        if end == "open":
            open_at.append((_STYLES.get(kind, ""), length))
            if kind == "link":
                links.append(str(child.attrs.get("href", "")))
        elif end == "close":
            name, start = open_at.pop()
            if name:
                spans.append(Span(start, length, name))
            if kind == "link" and (target := links.pop()) and target not in "".join(words[-8:]):
                add(f" ({target})", "$muted")
        elif child.type == "code_inline":
            add(child.content, _CODE)
        elif child.type == "image":
            add(f"[{child.content}] ({child.attrs.get('src', '')})", "$muted")
        elif child.type == "softbreak":
            add(" ")
        elif child.type == "hardbreak":
            add("\n")
        else:
            add(re.sub(r"\s+", " ", child.content))
    if style:
        spans.insert(0, Span(0, length, style))
    return Content("".join(words), spans)


def _code(token: Token, coloured: bool) -> Content:
    """Code; without the name of a language it stays plain, since guessing one loads every lexer there is."""
    code = clean(token.content.rstrip("\n"))
    language = token.info.split()[0] if token.info.strip() else ""
    if (
        not coloured
        or not language
        or len(code) > MOST_COLOURED
        or any(len(line) > 1000 for line in code.split("\n"))
    ):
        return Content(code)
    return highlight(code, language=language, theme=PygmentsColours)

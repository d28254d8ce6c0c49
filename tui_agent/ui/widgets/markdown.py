"""Markdown from outside, drawn as a few pieces of styled text; nothing in it can be followed by accident.

A widget for each block, as Textual's own Markdown has, costs a millisecond and more of the event loop apiece: a
reply of a thousand list items would stop the keyboard for seconds. Here the text is parsed and styled in a thread
and shown a piece at a time, so that the longest step does not grow with the reply. What a parser could choke on (deep
nesting, thousands of brackets, endless lines) is shown as the plain text that it is, and a line says so.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct
from pygments.token import Token as Kind
from rich.cells import cell_len
from textual.containers import Vertical
from textual.content import Content, Span
from textual.highlight import HighlightTheme, highlight
from textual.widget import MountError
from textual.widgets import Static

from tui_agent.files.visible import clean

#: Levels of quotes and lists inside each other, two for a list; deeper text is shown plain.
MOST_NESTED = 40
#: Signs in one paragraph that a parser has to pair, and characters in one line.
MOST_SIGNS = 2_000
MOST_IN_LINE = 10_000
#: A piece is what is drawn at once: so many lines and characters.
PIECE_LINES = 40
PIECE_CHARACTERS = 3_000
#: Seconds between two pieces, so that keys come in between.
PAUSE = 1 / 60
#: Of one message so much is drawn.
MOST_LINES = 5_000
MOST_CHARACTERS = 400_000
#: Shorter text is drawn at once, longer text is parsed in a thread.
AT_ONCE = 2_000
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


class Piece(Struct, frozen=True):
    """Lines that are drawn together; `code` has a ground of its own."""

    content: Content
    code: bool = False


class CodeColours(HighlightTheme):
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


class MarkdownText(Vertical):
    """A message in Markdown, or with `parsed` false in plain words, however long.

    `show` may be called again with a longer text while it streams.
    """

    DEFAULT_CSS = """
    MarkdownText {
        height: auto;
        & > Static { width: 100%; height: auto; }
        & > .code { background: $surface-raised; padding: 0 1; }
    }
    """

    def __init__(self, text: str, *, parsed: bool = True, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._text = text
        self._parsed = parsed
        self._shown: list[Piece] = []
        self._drawing = asyncio.Lock()

    def compose(self) -> Iterable[Static]:
        if len(self._text) <= AT_ONCE:
            self._shown = pieces(self._text, self._parsed)
        yield from map(_static, self._shown)

    async def on_mount(self) -> None:
        if not self._shown:
            self.run_worker(self.show(self._text), exit_on_error=False)

    async def show(self, text: str) -> None:
        """Draw this text; what is the same as before stays. Steps are short, whatever the length of the text."""
        self._text = text
        async with self._drawing:
            if text != self._text:
                return  # a longer one waits
            wanted = await asyncio.to_thread(pieces, text, self._parsed)
            same = _same(self._shown, wanted)
            children = list(self.query_children(Static))
            for child, piece in zip(children[same:], wanted[same:], strict=False):
                child.update(piece.content)
                child.set_class(piece.code, "code")
            for child in children[len(wanted) :]:
                await child.remove()
            for piece in wanted[len(children) :]:
                try:
                    await self.mount(_static(piece))
                except MountError:
                    return  # the message is going
                await asyncio.sleep(PAUSE)
            self._shown = wanted


def pieces(text: str, parsed: bool = True) -> list[Piece]:
    """The text as pieces, in order. Takes time in proportion to its length; for a thread where that is long."""
    text = clean(text)
    notes = []
    if len(text) > MOST_CHARACTERS or text.count("\n") >= MOST_LINES:
        text = "\n".join(text[:MOST_CHARACTERS].split("\n")[:MOST_LINES])
        notes.append(TOO_LONG)
    tokens = _tokens(text) if parsed else None
    if tokens is None:
        notes += [TOO_DEEP] if parsed else []
        lines = [_Line(Content(line)) for line in text.split("\n")]
    else:
        lines = list(_Drawing(tokens).lines())
    if len(lines) > MOST_LINES:
        lines = lines[:MOST_LINES]
        notes = [*(note for note in notes if note != TOO_LONG), TOO_LONG]
    lines += [_Line(Content.styled(note, "$muted")) for note in notes]
    return list(_packed(lines))


class _Line(Struct, frozen=True):
    content: Content
    code: bool = False


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


def _same(before: Sequence[Piece], after: Sequence[Piece]) -> int:
    pairs = zip(before, after, strict=False)
    return next(
        (at for at, (old, new) in enumerate(pairs) if not _equal(old, new)), min(len(before), len(after))
    )


def _equal(old: Piece, new: Piece) -> bool:
    return (old.code, old.content.plain, old.content.spans) == (
        new.code,
        new.content.plain,
        new.content.spans,
    )


def _static(piece: Piece) -> Static:
    return Static(piece.content, classes="code" if piece.code else "", markup=False)


def _packed(lines: Sequence[_Line]) -> Iterator[Piece]:
    """Lines of one kind together, as many as may be drawn in one step; a longer line alone in several."""
    batch: list[Content] = []
    size, code = 0, False
    for line in lines:
        for part in _cut(line.content):
            full = len(batch) >= PIECE_LINES or size + len(part) > PIECE_CHARACTERS
            if batch and (full or line.code is not code):
                yield Piece(Content("\n").join(batch), code)
                batch, size = [], 0
            batch.append(part)
            size += len(part)
            code = line.code
    if batch:
        yield Piece(Content("\n").join(batch), code)


def _cut(line: Content) -> Iterator[Content]:
    if len(line) <= PIECE_CHARACTERS:
        yield line
        return
    for at in range(0, len(line), PIECE_CHARACTERS):
        yield line[at : at + PIECE_CHARACTERS]


class _Drawing:
    """Goes through the blocks once and gives their lines, each behind the marks of the quotes and lists it is in."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = iter(tokens)
        self._marks: list[str] = []  # before each line, from the outside in
        self._first: list[str] = []  # the same for the next line only: bullets and numbers
        self._lists: list[int | None] = []  # the number of the next item, None where items have none
        self._style = ""
        self._gap: int | None = None  # an empty line is due, behind so many of the marks
        self._begun = False

    def lines(self) -> Iterator[_Line]:
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
                    yield from self._put(_coloured(token).split("\n"), code=True)
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

    def _put(self, contents: Sequence[Content], code: bool = False) -> Iterator[_Line]:
        if self._gap is not None and self._begun:
            yield _Line(Content.styled("".join(self._marks[: self._gap]).rstrip(), "$faint"))
        self._gap, self._begun = None, True
        for content in contents:
            marks = Content.styled("".join(self._first), "$faint")
            self._first = list(self._marks)
            if code and self._marks:
                content = content.stylize("on $surface-raised")
            yield _Line(marks + content, code and not self._marks)

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


def _coloured(token: Token) -> Content:
    """Code; without the name of a language it stays plain, since guessing one loads every lexer there is."""
    code = clean(token.content.rstrip("\n"))
    language = token.info.split()[0] if token.info.strip() else ""
    if not language or len(code) > MOST_COLOURED or any(len(line) > 1000 for line in code.split("\n")):
        return Content(code)
    return highlight(code, language=language, theme=CodeColours)

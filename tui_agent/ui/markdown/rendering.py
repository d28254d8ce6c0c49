"""Draws parsed Markdown blocks as lines. Input too complex for the parser (thousands of brackets, endless
lines) stays plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct
from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.token import Token as Kind
from textual.content import Content, Span
from textual.style import Style

from tui_agent.files.numbers import whole_number
from tui_agent.files.text import clean
from tui_agent.processes.background import pause
from tui_agent.ui.markdown.text_lines import AnyLine, Table, TableLine, TextLine

#: Maximum nesting of quotes and lists; a list counts twice. Deeper text is shown plain.
MOST_NESTED = 40
#: Maximum markup signs in a paragraph, characters in a line, columns in a table.
MOST_SIGNS = 2_000
MOST_IN_LINE = 10_000
MOST_COLUMNS = 100
#: Characters after which a line is split.
MOST_TOGETHER = 3_000
#: Code lengths above which highlighting runs after drawing, or not at all.
COLOURED_AT_ONCE, MOST_COLOURED = 3_000, 200_000
#: Maximum characters of a highlighted line.
LONGEST_COLOURED = 1_000

_SIGNS = re.compile(r"[\[\]*_`~<&!|\\]")
_TASK = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_DONE, _OPEN = "✓ ", "○ "
_BULLETS = "•◦▪‣"
_STYLES = {"em": "italic", "strong": "bold", "s": "strike", "link": "underline"}
_HEADING = {"h1": "bold $syntax-heading", "h2": "bold $syntax-heading"}
_CODE = "$syntax-string on $surface-raised"
COLOURS: dict[Any, str] = {
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
    Kind.Generic.Inserted: "$added on $added-surface",
    Kind.Generic.Deleted: "$removed on $removed-surface",
    Kind.Generic.Heading: "$syntax-heading",
}

#: Parses only blocks. `Blocks` parses their inline content with the link definitions known at that time.
PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": MOST_NESTED}).enable(
    ["table", "strikethrough"]
)
PARSER.core.ruler.enableOnly(["normalize", "block"])


def _pause_in_parsing(*_: object) -> bool:
    """Matches nothing; tried at each possible start of a block or inline element."""
    pause()
    return False


PARSER.block.ruler.before("table", "pause", _pause_in_parsing)
PARSER.inline.ruler.before("text", "pause", _pause_in_parsing)


class Blocks:
    """Draws blocks in order, with the prefixes of their quotes and lists. `links` maps names to addresses."""

    def __init__(
        self, source: Sequence[str], links: dict[str, Any], begun: bool, within: ListContext | None
    ) -> None:
        """`begun`: other blocks precede. `within`: the first block continues this list."""
        self._source = source
        self._links = links
        self._begun = begun
        self._within = within
        self._marks: list[str] = []  # prefixes of all lines, outermost first
        self._first: list[str] = []  # prefixes of the next line: bullets and numbers
        self._fresh = False
        self._lists: list[_List] = []
        self._style = ""
        #: Whether a block was too long or too dense for the parser.
        self.plain = False
        self.uncoloured: list[UnhighlightedCode] = []
        self._made, self._colours = 0, True

    @property
    def number(self) -> int | None:
        return self._lists[0].number if self._lists else None

    def lines(self, tokens: Sequence[Token], first: int, colours: bool = True) -> Iterator[AnyLine]:
        """`first` is the index of the first line, for later highlighting."""
        self._made, self._colours = first, colours
        for line in self._lines(tokens):
            self._made += 1
            yield line

    def code(self, code: str, info: str, first: int) -> list[TextLine]:
        self._made = first + 1
        return [*self._code(code, info)]

    def skip(self, tokens: Sequence[Token]) -> None:
        """Counts list items drawn elsewhere, so that numbering continues after them."""
        if tokens[0].type in ("bullet_list_open", "ordered_list_open"):
            self._enter_list(tokens[0])
        if self._lists:
            there = self._lists[0]
            items = sum(token.type == "list_item_open" and token.level == 1 for token in tokens)
            there.number = None if there.number is None else there.number + items
            there.begun = True
        if tokens[-1].type in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()

    def _lines(self, tokens: Sequence[Token]) -> Iterator[AnyLine]:
        at = -1
        while (at := at + 1) < len(tokens):
            token = tokens[at]
            match token.type:
                case "blockquote_open":
                    yield from self._space(token)
                    self._enter("▏ ", "▏ ")
                case "bullet_list_open" | "ordered_list_open":
                    self._enter_list(token)
                case "list_item_open":
                    yield from self._space(token)
                    self._lists[-1].begun = True
                    self._enter_item(tokens[at + 1 : at + 3])
                case "blockquote_close" | "list_item_close":
                    if self._fresh:
                        yield from self._add_block([Content()])
                    self._marks.pop()
                    self._first.pop()
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                case "heading_open":
                    yield from self._space(token)
                    self._style = _HEADING.get(token.tag, "bold")
                case "heading_close":
                    self._style = ""
                case "paragraph_open":
                    yield from self._space(token)
                case "inline":
                    yield from self._add_block(self._words(token, self._style).split("\n"), prose=True)
                case "fence" | "code_block":
                    yield from self._space(token)
                    yield from self._code(token.content, token.info)
                case "hr":
                    yield from self._space(token)
                    yield from self._add_block([Content.styled("─" * 24, "$faint")])
                case "table_open":
                    yield from self._space(token)
                    end = next(end for end in range(at, len(tokens)) if tokens[end].type == "table_close")
                    yield from self._table(tokens[at:end])
                    at = end

    def text(self, text: str) -> Iterator[TextLine]:
        if self._begun:
            yield TextLine(Content())
        self._begun = self.plain = True
        for line in text.split("\n"):
            yield from (TextLine(part) for part in cut(Content(line)))

    def _space(self, token: Token) -> Iterator[TextLine]:
        """A blank line between blocks; in a list only if the source has one."""
        if self._fresh or not self._begun:
            return
        lists = len(self._lists)
        if token.type == "list_item_open" and not self._lists[-1].begun:
            lists -= 1
        if lists and token.map:
            start = token.map[0]
            blank = (
                not self._source[start - 1].strip(" \t>") if start else self._within and self._within.blank
            )
            if not blank:
                return
        marks = "".join(self._marks).rstrip()
        yield TextLine(Content.styled(marks, "$faint") if marks else Content())

    def _enter(self, first: str, later: str) -> None:
        self._first.append(first)
        self._marks.append(later)
        self._fresh = True

    def _enter_list(self, token: Token) -> None:
        number = (
            whole_number(str(token.attrs.get("start", 1)), 1) if token.type == "ordered_list_open" else None
        )
        if self._within is not None and not self._lists and token.map and token.map[0] == 0:
            self._lists.append(_List(self._within.number, begun=True))
        else:
            self._lists.append(_List(number))

    def _enter_item(self, ahead: Sequence[Token]) -> None:
        """A task mark replaces the bullet."""
        there = self._lists[-1]
        levels = sum(one.number is None for one in self._lists)
        mark = f"{_BULLETS[(levels - 1) % len(_BULLETS)]} " if there.number is None else f"{there.number}. "
        if there.number is not None:
            there.number += 1
        if len(ahead) == 2 and ahead[1].type == "inline" and (task := _TASK.match(ahead[1].content)):
            ahead[1].content = ahead[1].content[task.end() :]
            done = _OPEN if task[1] == " " else _DONE
            mark = done if there.number is None else mark + done
        self._enter(mark, " " * len(mark))

    def _add_block(
        self, contents: Sequence[Content], code: bool = False, prose: bool = False
    ) -> Iterator[TextLine]:
        self._fresh, self._begun = False, True
        first = "".join(self._first)
        if contents:
            self._first = list(self._marks)
        yield from marked(contents, first, "".join(self._marks), code, prose)

    def _words(self, token: Token, style: str = "") -> Content:
        text = token.content
        if len(text) > MOST_IN_LINE or len(_SIGNS.findall(text)) > MOST_SIGNS:
            self.plain = True
            return Content.styled(text, style) if style else Content(text)
        children: list[Token] = []
        PARSER.inline.parse(text, PARSER, {"references": self._links}, children)
        return _styled(children, style)

    def _code(self, code: str, info: str) -> Iterator[TextLine]:
        """Code without a language stays plain: guessing would load all lexers."""
        code = clean(code.rstrip("\n"))
        first = "".join(self._first)
        yield head_of(info, first)
        self._first = list(self._marks)
        language = info.split()[0].lower() if info.strip() and self._colours else ""
        if language not in LANGUAGES or len(code) > MOST_COLOURED:
            language = ""
        elif len(code) > COLOURED_AT_ONCE or language not in LOADED:
            hang = "".join(self._marks)
            self.uncoloured.append(UnhighlightedCode(self._made, language, code, hang, hang))
            language = ""
        yield from self._add_block(coloured(code, language), code=True)

    def _table(self, tokens: Sequence[Token]) -> Iterator[AnyLine]:
        rows = self.rows(tokens)
        if len(rows[0]) > MOST_COLUMNS:
            self.plain = True
            start, end = tokens[0].map or (0, 0)
            yield from self._add_block([Content(line) for line in self._source[start:end]])
            return
        heads = (token for token in tokens if token.type == "th_open")
        sides = tuple(str(token.attrs.get("style", "")).removeprefix("text-align:") for token in heads)
        table = Table.of(rows, sides=sides)
        marks = "".join(self._first)
        if marks != "".join(self._marks):
            yield from self._add_block([Content()])
        self._fresh, self._begun = False, True
        hang = "".join(self._marks)
        yield from (TableLine(table, row, not at, hang) for at, row in enumerate(rows))

    def rows(self, tokens: Sequence[Token]) -> list[tuple[Content, ...]]:
        rows: list[list[Content]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                pause()
                rows[-1].append(self._words(token, "" if len(rows) > 1 else "bold"))
        return [tuple(cell.simplify() for cell in row) for row in rows]


def head_of(info: str, marks: str = "") -> TextLine:
    language = clean(info).split()[0][:40] if info.strip() else "text"
    return TextLine(_faint(marks) if marks else Content(), True, len(marks), head=language)


class UnhighlightedCode(Struct, frozen=True):
    """Index of the code's first line, prefixes of its first and other lines."""

    line: int
    language: str
    code: str
    first: str = ""
    hang: str = ""


class ListContext(Struct, frozen=True):
    """Next number, bullet sign, and whether a blank line precedes."""

    number: int | None
    sign: str
    blank: bool


class _List(Struct):
    number: int | None
    begun: bool = False


def cut(line: Content) -> Iterator[Content]:
    if len(line) <= MOST_TOGETHER:
        yield line
        return
    for at in range(0, len(line), MOST_TOGETHER):
        yield line[at : at + MOST_TOGETHER]


def marked(
    contents: Iterable[Content], first: str, hang: str, code: bool = False, prose: bool = False
) -> Iterator[TextLine]:
    marks = first
    for content in contents:
        for part in cut(content):
            words = _faint(marks) + part if marks else part
            yield TextLine(words, code, len(marks), hang, prose=prose)
            marks = hang


@cache
def _faint(marks: str) -> Content:
    return Content.styled(marks, "$faint")


#: Built into pygments, which for others reads the metadata of every installed package.
LANGUAGES = frozenset(alias for _, aliases, *_ in get_all_lexers(plugins=False) for alias in aliases)
#: Languages with a loaded lexer; loading takes at least 50 ms.
LOADED: set[str] = set()


def coloured(code: str, language: str) -> list[Content]:
    if not language or max(map(len, code.split("\n"))) > LONGEST_COLOURED:
        return Content(code).split("\n", allow_blank=True)
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    lines: list[Content] = []
    words, spans, length = [], [], 0
    for kind, token in lexer.get_tokens(
        f"{code}\n"
    ):  # rules of some lexers, such as that of diffs, end with it
        pause()
        style = _style_of(kind)
        for number, part in enumerate(token.split("\n")):
            if number:
                lines.append(Content("".join(words), spans))
                words, spans, length = [], [], 0
            if part:
                words.append(part)
                if style:
                    spans.append(Span(length, length + len(part), style))
                length += len(part)
    LOADED.add(language)
    return lines


@cache
def _style_of(kind: Any) -> str:
    while kind is not None:
        if kind in COLOURS:
            return COLOURS[kind]
        kind = kind.parent
    return ""


def _styled(tokens: Sequence[Token], style: str) -> Content:
    """Applies `clean` again, for decoded entities."""
    words: list[str] = []
    spans: list[Span] = []
    open_at: list[tuple[str, int]] = []
    links: list[str] = []
    length = 0

    def add(text: str, style: str | Style = "") -> None:
        nonlocal length
        text = clean(text)
        words.append(text)
        if style:
            spans.append(Span(length, length + len(text), style))
        length += len(text)

    for child in tokens:
        kind, _, end = child.type.rpartition("_")
        if end == "open":
            open_at.append((_STYLES.get(kind, ""), length))
            if kind == "link":
                links.append(str(child.attrs.get("href", "")))
        elif end == "close":
            name, start = open_at.pop()
            if name:
                spans.append(Span(start, length, name))
            if kind == "link" and (target := links.pop()):
                if target not in "".join(words[-8:]):
                    add(f" ({target})", "$muted")
                spans.append(Span(start, length, Style.from_meta({"address": clean(target)})))
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

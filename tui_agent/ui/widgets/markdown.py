"""Markdown from outside, drawn in the palette's colours; nothing in it can be followed by accident."""

from __future__ import annotations

from pygments.token import Token
from textual.content import Content
from textual.highlight import HighlightTheme, highlight
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownBlock, MarkdownFence


class CodeColours(HighlightTheme):
    """Pygments' tokens by the palette's meanings."""

    STYLES: dict[tuple[str, ...], str] = {  # noqa: RUF012 — as its base declares it
        Token.Comment: "$syntax-comment italic",
        Token.Keyword: "$syntax-keyword",
        Token.Keyword.Constant: "$syntax-constant",
        Token.Literal.Number: "$syntax-number",
        Token.Literal.String: "$syntax-string",
        Token.Name.Builtin: "$syntax-function",
        Token.Name.Class: "$syntax-type",
        Token.Name.Decorator: "$syntax-function",
        Token.Name.Function: "$syntax-function",
        Token.Name.Tag: "$syntax-keyword",
        Token.Name.Attribute: "$syntax-constant",
        Token.Operator: "$syntax-operator",
        Token.Operator.Word: "$syntax-keyword",
        Token.Generic.Inserted: "$added",
        Token.Generic.Deleted: "$removed",
        Token.Generic.Heading: "$syntax-heading",
    }


class Fence(MarkdownFence):
    """A block of code."""

    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        """Code that names no language stays plain: guessing one loads every lexer there is."""
        return highlight(code, language=language or "text", theme=CodeColours)


class SafeMarkdown(Markdown):
    """Links are underlined text; opening one is the person's own doing."""

    BLOCKS: dict[str, type[MarkdownBlock]] = {  # noqa: RUF012
        **Markdown.BLOCKS,
        "fence": Fence,
        "code_block": Fence,
    }
    BULLETS: list[str] = [  # noqa: RUF012
        "• ",
        "◦ ",
        "▪ ",
        "‣ ",
    ]

    DEFAULT_CSS = """
    SafeMarkdown {
        padding: 0; margin: 0; background: transparent; height: auto; color: $text;
        & MarkdownBlock:last-child { margin-bottom: 0; }
        & MarkdownFence { background: $surface-raised; margin: 0 0 1 0; padding: 0 1; color: $text; }
        & MarkdownFence > Label { padding: 0; }
        & MarkdownBlock:dark > .code_inline, & MarkdownBlock:light > .code_inline {
            background: $surface-raised; color: $syntax-string; text-style: none;
        }
        & MarkdownHeader { margin: 0 0 1 0; }
        & MarkdownH1 { content-align: left middle; }
        & MarkdownBlockQuote { background: $surface; border-left: wide $faint; }
    }
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, open_links=False)

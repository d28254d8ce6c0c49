"""Rows of the screen as they are spoken: words in place of signs, nothing that is drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: What draws lines, blocks and dots, and marks that say nothing beside their words.
_DRAWN = re.compile("[\u2500-\u259f\u2800-\u28ff]")
_BETWEEN_WORDS = re.compile(r"(?<=\S) +[│┃] +(?=\S)")
_SYMBOLS = re.compile("[\u2190-\u21ff\u22ef\u25a0-\u27bf\u2b00-\u2bff]")
#: What comes before the first letter or figure of a row.
_LEADING = re.compile(r"^[^\w\"'(\[{<+-]+")
_KEYS = {"←": "Left", "↑": "Up", "→": "Right", "↓": "Down"}
#: What signs with a number say in a title and in the status line.
_COUNTED = {"●": "to decide", "⚠": "in conflict", "✗": "failed", "◌": "silent", "✓": "applied"}
_MOVED = {"↑": "ahead", "↓": "behind", "±": "changed"}

_ANYWHERE = {"✓": "done", "✗": "failed", "▸": "folded", "▾": "unfolded", "■": "stopped", "≠": "stale"}
#: What signs say, by the pane that they are in.
_WORDS: dict[str, Mapping[str, str]] = {
    "status": dict.fromkeys("●⚠✗?◆", ""),
    "title": {"●": "to decide", "⚠": "in conflict", "?": "asks"},
    "files": {"◆": "known", "⚠": "stale", "●": "open"},
    "buffers": {"●": "unsaved"},
    "chat": dict.fromkeys("●⚠◌?", "") | {"○": "open"},
    "plan": {
        "✓": "found",
        "✗": "not found",
        "●": "looking",
        "?": "asks",
        "+": "new",
        "–": "left out",
        "→": "to",
    },
    "review": {
        "✓": "applied",
        "●": "to decide",
        "◐": "partly decided",
        "!": "conflict",
        "–": "skipped",
        "→": "to",
    },
    "todos": {"✓": "done", "○": "open"},
    "known": {"⚠": "stale", "●": "read"},
    "subtasks": {
        "○": "not begun",
        "◉": "ticked",
        "◎": "begins by itself",
        "●": "running",
        "◌": "silent",
        "–": "skipped",
        "×": "stopped",
        "⚠": "",
        "›": "",
    },
    "dialog": {"→": "to", "←": "from", "●": "open"},
}


#: A line of a difference: the state of its hunk, its number, its sign.
_DIFF_LINE = re.compile(r"^([▌ ]*[✓–]? *)(\d+) ([-+ ]) ")
#: An item of a task list, as it is drawn.
_TICK_BOX, _TICKS = re.compile(r"^( *)([✓○])(?= )"), {"✓": "done:", "○": "open:"}
_LINES = re.compile(r"\+(\d+) −(\d+)")
#: What has at least two spaces around it.
_COLUMN = re.compile(r"\S+(?: \S+)*")


def spoken(text: str, pane: str = "") -> str:
    """A row of ours in words; `pane` is where it is: the id of a pane, "title", "status" or "dialog"."""
    words = {**_ANYWHERE, **_WORDS.get(pane, {})}
    drawn = text = _DRAWN.sub(" ", _BETWEEN_WORDS.sub(" | ", text))
    text = re.sub(r"↓ (?=\d+ new)", "", text)
    text = re.sub(r" ([●⚠✗◌✓])(\d+)", lambda found: f", {found[2]} {_COUNTED[found[1]]}", text)
    text = re.sub(r"([↑↓±])(\d+)", lambda found: f"{found[2]} {_MOVED[found[1]]}", text)
    text = re.sub(r"(?<=\+)[←↑→↓]", lambda found: _KEYS[found[0]], text)
    signs = "".join(map(re.escape, words))
    text = re.sub(rf"(?<!\S)([{signs}])(?!\S)", lambda found: words[found[1]], text)
    text = _LINES.sub(lambda found: f"{found[1]} added, {found[2]} removed", text)
    text = re.sub(r"^( *)· ", r"\1", text).replace(" · ", ", ")
    text = re.sub("[←↑→↓]", lambda found: _KEYS[found[0]], text)
    return _in_columns(_SYMBOLS.sub(" ", text), drawn)


def _in_columns(said: str, drawn: str) -> str:
    """The row with its columns where they are drawn, as far as longer words leave room."""
    words, columns = _COLUMN.findall(said), [found.start() for found in _COLUMN.finditer(drawn)]
    if said == drawn or len(words) != len(columns):
        return said
    row = ""
    for word, column in zip(words, columns, strict=True):
        row = (row and f"{row}  ").ljust(column) + word
    return row


def around_file_text(text: str) -> str:
    """A row of a difference: only what is before the text is ours."""
    if found := _DIFF_LINE.match(text):
        state, number, sign = found[1].strip("▌ "), found[2], found[3]
        said = [spoken(state, "review"), number, {"+": "added:", "-": "removed:"}.get(sign, "")]
        return f" {' '.join(word for word in said if word)} {text[found.end() :]}"
    return _LEADING.sub(lambda found: spoken(found[0], "review"), text)


def around_model_text(text: str) -> str:
    """What the model wrote keeps its characters; what is drawn around it is left out."""
    text = _DRAWN.sub(
        " ", _BETWEEN_WORDS.sub(" | ", _TICK_BOX.sub(lambda box: box[1] + _TICKS[box[2]], text))
    )
    return text.replace("↪", " ")

"""Converts screen rows to speech: words replace signs, drawings are removed."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Line, block and dot drawings, and signs redundant with the adjacent words.
_DRAWN = re.compile("[\u2500-\u259f\u2800-\u28ff]")
_BETWEEN_WORDS = re.compile(r"(?<=\S) +[│┃] +(?=\S)")
_SYMBOLS = re.compile("[\u2190-\u21ff\u22ef\u25a0-\u27bf\u2b00-\u2bff]")
#: Characters before the first word of a row.
_LEADING = re.compile(r"^[^\w\"'(\[{<+-]+")
_KEYS = {"←": "Left", "↑": "Up", "→": "Right", "↓": "Down"}
#: Meanings of signs with a number in titles and the status line.
_COUNTED = {"●": "to decide", "⚠": "in conflict", "✗": "failed", "◌": "silent", "✓": "applied"}
_MOVED = {"↑": "ahead", "↓": "behind", "±": "changed"}

_ANYWHERE = {
    "✓": "done",
    "✗": "failed",
    "▸": "folded",
    "▾": "unfolded",
    "■": "stopped",
    "–": "missing",
    "≠": "stale",
}
#: Meanings of signs, by pane.
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
        "○": "not started",
        "◉": "ticked",
        "◎": "starts automatically",
        "●": "running",
        "◌": "silent",
        "–": "skipped",
        "×": "stopped",
        "⚠": "",
        "›": "",
    },
    "dialog": {"→": "to", "←": "from", "●": "open"},
}


#: A diff line: hunk state, line number before or after the change or both, sign.
_DIFF_LINE = re.compile(r"^([▌ ]*[✓–]? *)(?:\d+ {1,7}(\d+) {3}|(\d+) {3,9}(-) |(\d+) ([-+ ]) )")
#: A drawn task list item.
_TICK_BOX, _TICKS = re.compile(r"^( *)([✓○])(?= )"), {"✓": "done:", "○": "open:"}
_LINES = re.compile(r"\+(\d+) −(\d+)")
#: A column: text surrounded by at least two spaces.
_COLUMN = re.compile(r"\S+(?: \S+)*")


def to_speech(text: str, pane: str = "") -> str:
    """Converts a row to words. `pane` is a pane id, "title", "status" or "dialog"."""
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
    words, columns = _COLUMN.findall(said), [found.start() for found in _COLUMN.finditer(drawn)]
    if said == drawn or len(words) != len(columns):
        return said
    row = ""
    for word, column in zip(words, columns, strict=True):
        row = (row and f"{row}  ").ljust(column) + word
    return row


def around_file_text(text: str) -> str:
    """Converts a diff row; only the part before the file's text is changed."""
    if found := _DIFF_LINE.match(text):
        state, number, sign = (
            found[1].strip("▌ "),
            found[2] or found[3] or found[5],
            found[4] or found[6] or "",
        )
        said = [to_speech(state, "review"), number, {"+": "added:", "-": "removed:"}.get(sign, "")]
        return f" {' '.join(word for word in said if word)} {text[found.end() :]}"
    return _LEADING.sub(lambda found: to_speech(found[0], "review"), text)


def around_model_text(text: str) -> str:
    """Removes drawings around the model's text, whose characters are preserved."""
    text = _DRAWN.sub(
        " ", _BETWEEN_WORDS.sub(" | ", _TICK_BOX.sub(lambda box: box[1] + _TICKS[box[2]], text))
    )
    return text.replace("↪", " ")

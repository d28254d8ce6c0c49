"""What stands in the editor, as the model reads it (C7): `<additional_data>` and its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from xml.sax.saxutils import quoteattr

from msgspec import Struct

ATTACHED_FILES = 15
EXCERPT_LINES = 20


class OpenFile(Struct, frozen=True):
    """An open buffer: the text on the screen, where the cursor is, and when the file last changed.

    `line` and `end_line` count from 1; `end_line` differs from `line` while lines are selected, and
    `selection` is then the selected text. `mtime` is in whole seconds, 0 where there is no file.
    """

    path: str
    text: str
    md5: str
    line: int = 1
    end_line: int = 1
    selection: str = ""
    unsaved: bool = False
    active: bool = False
    mtime: int = 0


def blocks(files: Sequence[OpenFile]) -> dict[str, str]:
    """The editor's blocks by name, in the order in which they are sent; none where nothing is open."""
    active = next((file for file in files if file.active), None)
    found: dict[str, str] = {}
    if active is not None:
        found["current_file"] = _current(active)
        if active.selection:
            found["manually_added_selection"] = _selection(active)
    recent = sorted(files, key=lambda file: (not file.active, -file.mtime, file.path))[:ATTACHED_FILES]
    for file in recent:
        found[f"file:{file.path}"] = _contents(file)
    return found


def additional_data(found: dict[str, str], sent: dict[str, str]) -> str:
    """The blocks that are new, wrapped; `sent` holds the digest of each as it was last sent."""
    new = {name: text for name, text in found.items() if sent.get(name) != digest(text)}
    if not new:
        return ""
    parts = [text for name, text in new.items() if name == "current_file"]
    attached = [text for name, text in new.items() if name.startswith("file:")]
    if attached:
        parts.append("<attached_files>\n" + "\n".join(attached) + "\n</attached_files>")
    parts += [text for name, text in new.items() if name == "manually_added_selection"]
    return "<additional_data>\n" + "\n".join(parts) + "\n</additional_data>"


def digest(block: str) -> str:
    """What is remembered of a block that was sent."""
    return md5(block.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()[:16]


def _current(file: OpenFile) -> str:
    lines = file.text.splitlines()
    words = lines[file.line - 1] if 0 < file.line <= len(lines) else ""
    return f"<current_file>\nPath: {file.path}\nLine: {file.line}\nLine content: {words}\n</current_file>"


def _selection(file: OpenFile) -> str:
    where = f"path={quoteattr(file.path)} lines={quoteattr(f'{file.line}-{file.end_line}')}"
    return f"<manually_added_selection {where}>\n{file.selection}\n</manually_added_selection>"


def _contents(file: OpenFile) -> str:
    lines = file.text.splitlines()
    shown = lines if file.active else lines[:EXCERPT_LINES]
    where = f"path={quoteattr(file.path)} mtime={quoteattr(str(file.mtime))}"
    span = f"lines={quoteattr(f'1-{len(shown)}')} total_lines={quoteattr(str(len(lines)))}"
    unsaved = ' unsaved="true"' if file.unsaved else ""
    text = "\n".join(f"{number}: {line}" for number, line in enumerate(shown, 1))
    return f"<file_contents {where} {span}{unsaved}>\n{text}\n</file_contents>"

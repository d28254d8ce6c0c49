"""Names of files as git and models write them: in the headers of diffs, behind a fence, in the line above it."""

from __future__ import annotations

import re

from tui_agent.files.numbers import based_number

NOTHING = "/dev/null"
_LONGEST = 300
#: Longer lines hold no name that a file can have.
_LONGEST_HEADER = 20_000

_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip
_QUOTED = re.compile(r'"((?:[^"\\]++|\\.)*+)"')
_DATE = re.compile(
    r"[ \t]{1,9}(?:\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?(?: ?(?:[+-]\d\d:?\d\d|Z|UTC))?"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .{10,40}|\((?:revision \d+|working copy|nonexistent)\))\Z"
)
#: What is before the names of the two sides: git's own letters, with and without `diff.mnemonicPrefix`.
_SIDES = frozenset({"a/b", "i/w", "c/i", "c/w", "o/w", "1/2", "w/i"})
_PUT_ASIDE = (".orig", ".old", ".bak", "~")

_SIGNS = re.compile(r"[\w@.~+/\[\]()$-]+")
_EXTENSION = re.compile(r"[A-Za-z0-9_-]{0,9}[A-Za-z][A-Za-z0-9_-]{0,9}")
_WITHOUT_EXTENSION = frozenset(
    {"Makefile", "Dockerfile", "Containerfile", "Jenkinsfile", "Procfile", "Gemfile", "Rakefile", "Vagrantfile"}
    | {"LICENSE", "CODEOWNERS", "Justfile", "justfile", "BUILD", "WORKSPACE"}
)  # fmt: skip
#: Behind a fence these are languages.
_LANGUAGES = frozenset({"asp.net", "vb.net", "node.js", "next.js", "react.js", "vue.js", "d3.js", "ember.js"})
_ATTRIBUTE = re.compile(r"(?:title|file|filename|filepath|path|name)[=:][ \t]*")
_LABEL_WORDS = re.compile(
    r"(?:(?:new|updated?|create|edit|change[ds]?|modified)[ \t]+)?(?:file(?:name)?|path)?[ \t]*:?[ \t]*", re.I
)
_CODE_SPAN = re.compile(r"`([^`\n]{1,300})`")


# ── headers of diffs ─────────────────────────────────────────────────────────────────────────────────────


def unquoted(name: str) -> str:
    """A name as git quotes it (`"a\\tb"`, octal bytes) as itself; any other name stays."""
    quoted = _QUOTED.fullmatch(name)
    if quoted is None:
        return name
    raw = _ESCAPE.sub(_escaped, quoted[1].encode("utf-8", "surrogatepass"))
    return raw.decode("utf-8", "replace")


def _escaped(match: re.Match[bytes]) -> bytes:
    sign = match[1]
    return bytes([based_number(sign.decode(), 8) & 255]) if len(sign) == 3 else _ESCAPES.get(sign, sign)


def in_header(text: str) -> str:
    """The name behind `--- ` or `+++ `, without the date that may follow it, with its prefix."""
    if len(text) > _LONGEST_HEADER:
        return ""
    quoted = _QUOTED.match(text)
    if quoted:
        return unquoted(quoted[0])
    return _DATE.sub("", text.split("\t", 1)[0].rstrip()).strip()


def of_git_line(text: str) -> tuple[str, str]:
    """Both names behind `diff --git `, with their prefixes; empty ones where a space makes them uncertain."""
    if len(text) > _LONGEST_HEADER:
        return "", ""
    first = _QUOTED.match(text)
    if first:
        return unquoted(first[0]), unquoted(text[first.end() :].strip())
    if text.endswith('"') and ' "' in text:
        at = text.index(' "')
        return text[:at], unquoted(text[at + 1 :])
    middle = len(text) // 2
    if len(text) % 2 and text[middle] == " " and _rest(text[:middle]) == _rest(text[middle + 1 :]):
        return text[:middle], text[middle + 1 :]
    for between in (" b/", " w/", " "):
        if text.count(between) == 1:
            at = text.index(between)
            return text[:at], text[at + 1 :]
    return "", ""


def _rest(name: str) -> str:
    """Without a prefix of one letter."""
    return name[2:] if name[1:2] == "/" else name


def sides(old: str, new: str, bare: bool = False) -> tuple[str, str]:
    """The two names of a file without git's prefixes; `bare` says that they were written without any.

    Two names that begin with the same folder have no prefix: git gives each side its own.
    """
    if bare or old == new:
        return old, new
    if NOTHING in (old, new):
        return _without(old, "a/", "i/", "c/"), _without(new, "b/", "w/", "i/")
    if f"{old[:1]}/{new[:1]}" in _SIDES and old[1:2] == new[1:2] == "/":
        return old[2:], new[2:]
    if old[:2] == "a/" and old[2:] == new:
        return new, new
    if new[:2] == "b/" and new[2:] == old:
        return old, old
    return old, new


def _without(name: str, *prefixes: str) -> str:
    return name[2:] if name[:2] in prefixes else name


def is_put_aside(old: str, new: str) -> bool:
    """Whether the old name is only a copy of the new one that was kept, or the same file in another folder."""
    return (old.startswith(new) and old[len(new) :] in _PUT_ASIDE) or _last(old) == _last(new)


def same_file(one: str, other: str) -> bool:
    """Whether two names can mean one file: the same, or one of them only leaves folders out."""
    one, other = plain(one), plain(other)
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def plain(path: str) -> str:
    """A path without what changes nothing: `./`, doubled slashes, `/./`."""
    if len(path) > _LONGEST_HEADER:
        return path
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    while "//" in path[1:] or "/./" in path:
        path = path[:1] + path[1:].replace("//", "/").replace("/./", "/")
    return path


# ── fences and labels ────────────────────────────────────────────────────────────────────────────────────


def is_path(text: str) -> bool:
    """Whether a word can only be a path: it has an extension or a folder, and nothing that paths rarely have."""
    if not text or len(text) > _LONGEST or not _SIGNS.fullmatch(text):
        return False
    name = _last(text)
    _, dot, extension = name.rpartition(".")
    if dot and _EXTENSION.fullmatch(extension):
        return True
    return name in _WITHOUT_EXTENSION or ("/" in text and re.fullmatch(r"[\w-]+", name) is not None)


def has_extension(path: str) -> bool:
    return "." in _last(path) or _last(path) in _WITHOUT_EXTENSION


def in_info(info: str) -> str:
    """The path behind the opening of a fence: `python src/a.py`, `py:src/a.py`, `title="src/a.py"`, `a.py`."""
    text = info.strip()
    if len(text) > _LONGEST or not text:
        return ""
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    first, blank, rest = text.partition(" ")
    if not blank and ":" in text and not _ATTRIBUTE.match(text):
        language, _, rest = text.partition(":")
        return plain(rest) if _is_language(language) and is_path(rest) else ""
    named = _ATTRIBUTE.match(rest.strip() if blank and not _ATTRIBUTE.match(text) else text)
    if named:
        name = (rest.strip() if blank and not _ATTRIBUTE.match(text) else text)[named.end() :]
        return _attribute(name)
    if not blank:
        name = text.strip("`'\"")
        sure = is_path(name) and has_extension(name) and name.lower() not in _LANGUAGES
        return plain(name) if sure else ""
    name = rest.strip().strip("`'\"")
    return plain(name) if _is_language(first) and is_path(name) else ""


def _attribute(text: str) -> str:
    """The value of `title=`, quoted or not, where nothing follows it."""
    if text[:1] in ("'", '"'):
        name, quote, rest = text[1:].partition(text[0])
        return plain(name) if quote and not rest.strip() and is_path(name.replace(" ", "_")) else ""
    return plain(text) if is_path(text) else ""


def _is_language(word: str) -> bool:
    return bool(word) and not word.isdigit() and all(sign.isalnum() or sign in "_+#.-" for sign in word)


def in_label(line: str) -> str:
    """The path that a line of prose consists of: `**src/a.py**`, `### src/a.py`, `File: a.py`."""
    if len(line) > _LONGEST:
        return ""
    bare = line.strip().lstrip("#>-*`_ ").rstrip(":*`_ ")
    words = _LABEL_WORDS.match(bare)
    bare = bare[words.end() if words else 0 :].strip("`*_: ")
    return plain(bare) if is_path(bare) else ""


def in_sure_label(line: str) -> str:
    """The path of a label that can mean nothing else; a heading `Node.js` or `Client/Server` can."""
    path = in_label(line)
    sure = ("/" in path and has_extension(path)) or "`" in line or re.search(r"\b(?:file|path)", line, re.I)
    return path if sure else ""


def mentioned(line: str) -> str:
    """The one path that a line of prose names as code: "In `src/a.py`, replace:"."""
    if len(line) > 2 * _LONGEST:
        return ""
    found = {plain(span) for span in _CODE_SPAN.findall(line) if is_path(span) and has_extension(span)}
    return found.pop() if len(found) == 1 else ""

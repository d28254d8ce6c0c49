"""File names in diff headers, fence info strings, and lines above fences."""

from __future__ import annotations

import re

from tui_agent.files.numbers import based_number

NOTHING = "/dev/null"
_LONGEST = 300
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
#: Sides in git, with and without `diff.mnemonicPrefix`.
_SIDES = frozenset({"a/b", "i/w", "c/i", "c/w", "o/w", "1/2", "w/i"})
_PUT_ASIDE = (".orig", ".old", ".bak", "~")

_SIGNS = re.compile(r"[\w@.~+/\[\]()$-]+")
_EXTENSION = re.compile(r"[A-Za-z0-9_-]{0,9}[A-Za-z][A-Za-z0-9_-]{0,9}")
_WITHOUT_EXTENSION = frozenset(
    {"Makefile", "Dockerfile", "Containerfile", "Jenkinsfile", "Procfile", "Gemfile", "Rakefile", "Vagrantfile"}
    | {"LICENSE", "CODEOWNERS", "Justfile", "justfile", "BUILD", "WORKSPACE"}
)  # fmt: skip
_LANGUAGES = frozenset({"asp.net", "vb.net", "node.js", "next.js", "react.js", "vue.js", "d3.js", "ember.js"})
_ATTRIBUTE = re.compile(r"(?:title|file|filename|filepath|path|name)[=:][ \t]*")
_IN_ATTRIBUTE = re.compile(
    r"(?:^|[\s{])(?:title|file|filename|filepath|file_path|path)[ \t]?[=:][ \t]*(\"[^\"]*\"|'[^']*'|[^\s\"'{}]+)"
)
_LABEL_WORDS = re.compile(
    r"(?:(?:and|then|also|next|finally|now|plus|new|the|updated?|create|edit|change[ds]?|modified|neue|nouveau|nuevo"
    r"|nowy|nytt|ny|nieuw)[ \t]+){0,2}"
    r"(?:file(?:name)?|path|datei|fichier|archivo|arquivo|plik|fil|bestand|文件|檔案|ファイル|файл|파일)?"
    r"[ \t]*[:：]?[ \t]*",
    re.I,
)
_CODE_SPAN = re.compile(r"`([^`\n]{1,300})`")


def unquoted(name: str) -> str:
    r"""Decodes git's quoting (`"a\tb"`, octal bytes)."""
    quoted = _QUOTED.fullmatch(name)
    if quoted is None:
        return name
    raw = _ESCAPE.sub(
        lambda found: (
            bytes([based_number(found[1].decode(), 8) & 255])
            if len(found[1]) == 3
            else _ESCAPES.get(found[1], found[1])
        ),
        quoted[1].encode("utf-8", "surrogatepass"),
    )
    return raw.decode("utf-8", "replace")


def in_header(text: str) -> str:
    """Returns the name after `--- ` or `+++ ` with its prefix, without a date."""
    if len(text) > _LONGEST_HEADER:
        return ""
    quoted = _QUOTED.match(text)
    if quoted:
        return unquoted(quoted[0])
    return _DATE.sub("", text.split("\t", 1)[0].rstrip()).strip()


def of_git_line(text: str) -> tuple[str, str]:
    """Returns both names with prefixes; "" if spaces make them ambiguous."""
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
    return name[2:] if name[1:2] == "/" else name


def without_git_prefixes(old: str, new: str, bare: bool = False) -> tuple[str, str]:
    """Two names with the same first folder have no prefix: git's prefixes differ. `bare`: neither has one."""
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
    return (old.startswith(new) and old[len(new) :] in _PUT_ASIDE) or _last(old) == _last(new)


def same_file(one: str, other: str) -> bool:
    """Whether the names are equal or one is a suffix of the other."""
    one, other = plain(one), plain(other)
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def plain(path: str) -> str:
    if len(path) > _LONGEST_HEADER:
        return path
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    while "//" in path[1:] or "/./" in path:
        path = path[:1] + path[1:].replace("//", "/").replace("/./", "/")
    return path


def is_path(text: str) -> bool:
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
    """For `python src/a.py`, `py:src/a.py`, `title="src/a.py"`, `a.py`."""
    text = info.strip()
    if len(text) > _LONGEST or not text:
        return ""
    if len(named := _IN_ATTRIBUTE.findall(text)) == 1:
        return _attribute(named[0])
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
        sure = sure and name not in _WITHOUT_EXTENSION
        return plain(name) if sure else ""
    name = rest.strip().strip("`'\"")
    return plain(name) if _is_language(first) and is_path(name) else ""


def _attribute(text: str) -> str:
    if text[:1] in ("'", '"'):
        name, quote, rest = text[1:].partition(text[0])
        return plain(name) if quote and not rest.strip() and is_path(name.replace(" ", "_")) else ""
    return plain(text) if is_path(text) else ""


def _is_language(word: str) -> bool:
    return bool(word) and not word.isdigit() and all(sign.isalnum() or sign in "_+#.-" for sign in word)


def in_label(line: str) -> str:
    """For `**src/a.py**`, `### 1. src/a.py`, `File: a.py`, `a.py (new)`."""
    if len(line) > _LONGEST:
        return ""
    bare = _LINK.sub(r"\1", _NUMBER.sub("", line.strip())).lstrip("#>-*` ")
    bare = _NUMBER.sub("", bare).lstrip("#>-*` ")
    bare = _ORNAMENT.sub("", bare)
    bare = bare if "(" in bare else bare.removesuffix(")")
    bare = _AFTER.sub("", _without_emphasis(bare.rstrip(":：*` "))).rstrip(":：*` ")
    words = _LABEL_WORDS.match(bare)
    bare = _without_emphasis(bare[words.end() if words else 0 :].strip("`*:： "))
    return plain(bare) if is_path(bare) else ""


def _without_emphasis(text: str) -> str:
    found = _EMPHASIS.fullmatch(text)
    return found[2] if found and is_path(found[2].rstrip(":：*` ")) else text


_EMPHASIS = re.compile(r"(_{1,2})([^_].{0,300}?)\1")


_ORNAMENT = re.compile(
    r"""^(?:[^\w./@~+\[(`*]|[(/=](?=[^)]*\)$|[ \t/=]))+|[ \t]+[-=~|<>#]+$|["'>|”’»]+[:：]?$"""
)
#: A number before a label; a relative link; a remark in brackets after it.
_NUMBER = re.compile(
    r"^[#\s*_]*(?:(?:step|schritt|file)[ \t]+)?\d{1,2}(?:/\d{1,2})?(?:[.):]|[ \t]+[–—-](?=[ \t]))[ \t]+", re.I
)
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\((?!\w+:)[^()\s]{1,300}\)")
_AFTER = re.compile(
    r"[`*_]{0,4}(?:[ \t]*[(（\[][^()\n]{1,60}[)）\]]|[ \t]+[–—-]+[ \t]+[^()\n]{1,60})[ \t]*[:：]?[`*_]{0,4}$"
)
_ANNOUNCES = re.compile(
    r"(?i)\b(?:create|creating|add|adding|write|save|put|new|full|complete|entire|whole|final|updated?|rewritten"
    r"|modified|revised|fixed|corrected|contents?|replace|file|here is|here's|here are|now looks?|becomes|as follows"
    r"|should (?:be|now|look)|needs?|you(?:'ll| will) (?:need|have)|plik|bestand"
    r"|datei|neue|neuer|inhalt|vollständig\w*|fichier|contenu|nouveau|archivo|contenido|nuevo|completo|arquivo)\b"
    r"|文件|檔案|内容|ファイル|файл|파일"
)
_PART_OF = re.compile(
    r"(?i)\b(?:where it says|which says|says|in line|lines? \d|around|only the|snippet|excerpt|part of|at the top|run"
    r"|usage|call(?:s|ed|ing)? it|imports?|insert|append|below|above|after the|before the|inside|within)\b"
)


def announced(line: str) -> str:
    """ "Here is the updated `src/a.py`:"."""
    bare = line.strip()
    if len(bare) > _LONGEST or not bare.rstrip("*_ ").endswith((":", "：", ".", "`")):
        return ""
    if not _ANNOUNCES.search(bare) or _PART_OF.search(bare):
        return ""
    spans = _NAMED_SPAN.findall(bare) or [word for word in _BARE_PATH.findall(bare) if "/" in word]
    found = {plain(span) for span in spans if is_path(span) and has_extension(span)}
    return found.pop() if len(found) == 1 else ""


def hinted(line: str) -> str:
    """Returns the only file mentioned in a line."""
    if len(line) > _LONGEST or _PART_OF.search(line):
        return ""
    spans = _NAMED_SPAN.findall(line)
    found = {plain(span) for span in spans if is_path(span) and has_extension(span)}
    found = found or {
        plain(word)
        for word in _BARE_PATH.findall(line)
        if is_path(word) and ("/" in word or word.rpartition(".")[2] in _EXTENSIONS)
    }
    return found.pop() if len(found) == 1 else ""


def hinted_in_comment(line: str) -> str:
    bare = line.strip()
    found = _FIRST_LINE.fullmatch(bare) if len(bare) < _LONGEST else None
    return plain(found[1]) if found and is_path(found[1]) and has_extension(found[1]) else ""


#: Excludes addresses and line numbers.
_BARE_PATH = re.compile(r"(?<![\w/:.@-])(?:\./)?\w[\w@.+/-]{0,200}\.\w{1,10}(?![\w/]|:\d)")
_FIRST_LINE = re.compile(
    r"""(?:#|//|--|;|%|<!--|/\*|["']{3})[ \t]*(?:(?:file(?:name)?|path|@file|module)[ \t]*:?[ \t]+)?"""
    r"""([\w./-]{1,300}?)[ \t]*(?:-->|\*/|["']{3})?"""
)
_NAMED_SPAN = re.compile(r"[`*\[]{1,3}([^`*\[\]\s]{1,300})[`*\]]{1,3}")
_COMMENT = re.compile(
    r"[ \t]*(?:#|//|--|;|%|<!--|/\*)[ \t]*(?:file(?:name)?:?[ \t]*)?(\S{1,300}?)[ \t]*(?:-->|\*/)?[ \t]*"
)


def in_comment(line: str) -> str:
    """For `# src/a.py`."""
    found = _COMMENT.fullmatch(line) if len(line) < _LONGEST else None
    name = found[1] if found else ""
    return plain(name) if is_path(name) and "/" in name and has_extension(name) else ""


#: File extensions by fence language. A fence in another language cannot contain the file.
_OF_LANGUAGES = {
    "python": "py pyi pyw", "py": "py pyi pyw", "javascript": "js mjs cjs jsx", "js": "js mjs cjs jsx",
    "typescript": "ts mts cts tsx", "ts": "ts mts cts tsx", "bash": "sh bash zsh", "sh": "sh bash zsh",
    "shell": "sh bash zsh", "zsh": "sh bash zsh", "powershell": "ps1", "bat": "bat cmd", "json": "json jsonc json5",
    "yaml": "yml yaml", "yml": "yml yaml", "toml": "toml lock", "html": "html htm vue svelte", "css": "css",
    "go": "go", "rust": "rs", "java": "java", "kotlin": "kt kts", "ruby": "rb", "sql": "sql", "markdown": "md markdown",
    "c": "c h", "cpp": "cpp cc cxx h hpp", "csharp": "cs", "php": "php", "swift": "swift", "lua": "lua",
}  # fmt: skip
_EXTENSIONS = frozenset(" ".join(_OF_LANGUAGES.values()).split())


def fits(language: str, path: str) -> bool:
    wanted = _OF_LANGUAGES.get(language)
    name = _last(path)
    return wanted is None or "." not in name or name.rpartition(".")[2].lower() in wanted.split()


def in_sure_label(line: str) -> str:
    """Excludes headings such as `Node.js` or `Client/Server`."""
    path = in_label(line)
    sure = ("/" in path and has_extension(path)) or "`" in line or _SURE.search(line)
    return path if sure else ""


_SURE = re.compile(r"(?i)\b(?:file|path|datei|fichier|archivo|arquivo)|\]\(|文件|檔案|ファイル|файл|파일")


def in_any_label(line: str) -> str:
    """Returns the name in a label, or the only path marked as code: "In `src/a.py`, replace:"."""
    if path := in_label(line):
        return path
    if len(line) > 2 * _LONGEST:
        return ""
    found = {plain(span) for span in _CODE_SPAN.findall(line) if is_path(span) and has_extension(span)}
    return found.pop() if len(found) == 1 else ""

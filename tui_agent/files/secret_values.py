"""Finds values of secret files in any text, plain or encoded.

Plain, Base64 (three alignments, both alphabets), hexadecimal, reversed and URL-encoded, ignoring white space
between characters. Values stay in memory, and no `repr` shows them.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import compress, count
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote

from tui_agent.files.folder_scan import in_letters
from tui_agent.files.lazy_regex import late
from tui_agent.files.masking import MASK, hits, joined_spans, words_of

#: Minimum length of a value, and of one whose name indicates a secret.
SHORTEST, SHORTEST_SAID = 12, 8
#: Longer values are searched in pieces; maximum number of values of a file.
PIECE, MOST_OF_A_FILE = 384, 2_000
#: Values searched; first those with telling names.
MOST_VALUES = 3_000
#: Characters read of a line, and of a value to classify it.
LONGEST_LINE, _JUDGED = 8_192, 300


class Value(NamedTuple):
    """Bytes to hide. `is_marked`: its name or format marks it as a secret. `plain`: it consists of words, so the
    project may use it elsewhere.
    """

    data: bytes
    is_marked: bool = True
    plain: bool = False

    def __repr__(self) -> str:
        return "Value(…)"


_ASSIGNED = late(
    r"""[ \t]*(?:[#;]+[ \t]*|//[ \t]+)?(?:-[ \t]+)?(?:(?:export|set|ENV)[ \t]+)?["']?
    (?P<name>(?://)?[A-Za-z_@$][^\s=:"'<>{}()]{0,120}?(?:/?:_\w{1,40})?)["']?
    [ \t]*(?:=>|:=|=|:(?=[\s"']|$))[ \t]*(?P<value>.*)""",
    re.VERBOSE,
)
_TAGGED = late(r"<([\w.:-]{1,80})(?: [^<>]{0,200})?>([^<>]{8,2000})</")
_ATTRIBUTE = late(r"""\b([\w.-]{1,80})=(?:"([^"]{8,2000})"|'([^']{8,2000})')""")
_PAIR_IN_LINE = late(r"""["']([\w.-]{1,80})["']\s*:\s*["']([^"']{8,2000})["']""")
_BLOCK = late(r"-----(BEGIN|END) ([A-Z0-9 ]{1,60})-----")
_BASE64_LINE = late(r"[A-Za-z0-9+/]{12,}={0,2}")
_URL = late(
    r"([A-Za-z][A-Za-z0-9+.-]{1,30}):/{2}(?:([^/?#\s]*)@)?([^/?#,;\s]*)((?:(?![,;|][a-z+]+:/{2})\S)*)"
)
_WORDS_OF_NAME = late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SAYS_AT_END = ("password", "passwd", "secret", "token", "apikey", "pwd")
_PUBLIC = (
    "NEXT_PUBLIC_",
    "NUXT_PUBLIC_",
    "EXPO_PUBLIC_",
    "REACT_APP_",
    "VITE_",
    "GATSBY_",
    "PUBLIC_",
    "VUE_APP_",
)
_PLACEHOLDER = late(
    r"(?i)\A(?:(?:please|todo|insert|enter|put|add|generate)[-_ ]|<.*>\Z|\$|%[\w.]+%\Z|\{\{|\[|\(|\#\{|x{4}|\*{3})"
    r"|\b(?:your|my)[-_ ][\w -]{0,40}?(?:here|key|token|secret|password|passwd)\b"
    r"|(?:change|replace)[-_ ]?(?:me|this|it|in)\b|placeholder|\bexample\b|_here\b"
)
_NOT_SECRET = late(
    r"""(?ix)
    [^@\s]+@[\w-]+(?:\.[\w-]+)+                                         # an address of e-mail
    | (?:[a-z0-9_*](?:[a-z0-9_-]{0,62})\.)+[a-z]{2,24}(?::\d+)?(?:/[\w./-]*)?  # a host, or names joined by dots
    | \[?[0-9a-f:.]{2,45}\]?(?::\d+)?(?:/\d+)?(?<![0-9a-f]{8})           # an address of a machine
    | [\w.-]+:\d{1,5}                                                   # a host and its port
    | (?:~|\.{0,2})(?:/[\w.@+*{}$-]*)+ | [a-z]:\\.* | (?:[\w.@+-]+/)+[\w.@+*-]*\.[a-z]{1,5}   # a path
    | [a-z]+(?:[/\\:.][a-z_]+)+                                         # a place, a name with parts
    | v?\d+(?:[.,:/_T+-]\d+)+[\w.:+-]{0,20}                             # a version, a date, a time
    | \d[\d_,. ]*(?:ms|s|m|h|d|kb|mb|gb|[kmg]i?b?|px|%)?                # a number
    """
)
_HEX_ID = late(
    r"(?i)(?:(?:[a-z]{1,8}-)?[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:sha\d+|md5)[:-].*)"
)
_SCHEME = late(r"(?i)\A(?:base64:|(?:bearer|basic|token) +)")
_PUBLIC_KEY = late(r"(?:ssh|ecdsa|sk)-[\w@.-]+$|AAAA[BCE][\w+/=]+$")
_PIECE = late(r"[A-Za-z0-9]+")
_WORD_PIECE = late(r"[A-Za-z]+\d{0,4}|\d{0,4}[A-Za-z]+|\d+")


@cache
def _ordinary_words() -> re.Pattern[str]:
    common = "|".join(sorted(words_of("common"), key=len, reverse=True))
    return re.compile(rf"(?:(?>{common}|x{{3,}}|[^a-z0-9]+|\d{{1,4}}(?!\d)))++")


def values_in(text: str, *, named: bool) -> list[Value]:
    """Returns distinct potential secrets, in order, in linear time.

    named: the file is a secret by name, so all its values count; otherwise only key formats. Excludes
    short and ordinary values, placeholders, public keys and certificates.
    """
    found: dict[bytes, Value] = {}
    for hit in hits(text):
        for line in text[hit.start : hit.end].splitlines():
            line = line.strip()
            plain = _BLOCK.search(line) or "EXAMPLE" in line or ": " in line
            if len(line) >= SHORTEST and not plain:
                _add(found, _value(line, is_marked=True))
    if named:
        said = set()  # public values such as user names, which may double as passwords
        for line in text.splitlines():
            match = _ASSIGNED.fullmatch(line[:LONGEST_LINE])
            if match and not _says(match["name"]):
                public = _bare(match["value"])
                if len(public) < 40 and _is_wordy(public):
                    said.add(public.strip().casefold())
        _add(found, (value for value in _named_values(text) if value.data.decode().casefold() not in said))
    return list(found.values())


def _add(found: dict[bytes, Value], values: Iterable[Value]) -> None:
    for value in values:
        if len(found) >= MOST_OF_A_FILE:
            return
        before = found.get(value.data)
        if before is None or (value.is_marked and not before.is_marked):
            found[value.data] = value


def _named_values(text: str) -> Iterator[Value]:
    block, blocks = "", bool(_BLOCK.match(text.lstrip())) or "\n-----BEGIN " in text
    for line in text.splitlines():
        line = line[:LONGEST_LINE].strip()
        if mark := _BLOCK.search(line):
            block = mark[2] if mark[1] == "BEGIN" else ""
        if block:
            if "PRIVATE" in block and not mark:
                yield from _lines_of_key(line)
            if "\\n" in line:
                yield from _block_in_line(line)
                block = ""
            continue
        if "PRIVATE KEY-----" in line:
            yield from _block_in_line(line)
        else:
            yield from (value for value in _of_line(line) if value.is_marked or not blocks)


def _block_in_line(line: str) -> Iterator[Value]:
    if "PRIVATE" in line:
        inside = line.partition("-----BEGIN ")[2].partition("-----END ")[0]
        yield from _lines_of_key(inside.replace("\\n", "\n"))


def _lines_of_key(text: str) -> Iterator[Value]:
    for match in _BASE64_LINE.finditer(text):
        yield from _value(match[0], is_marked=True)


def _of_line(line: str) -> Iterator[Value]:
    pairs = [(match[1], match[2]) for match in _TAGGED.finditer(line)]
    pairs += [(match[1], match[2]) for match in _PAIR_IN_LINE.finditer(line)]
    assigned = None if pairs else _ASSIGNED.fullmatch(line)
    if assigned:
        pairs.append((assigned["name"], _bare(assigned["value"])))
    elif not pairs:
        if line.startswith(("#", "//", ";", "<!--")):
            return
        pairs += [(match[1], match[2] or match[3]) for match in _ATTRIBUTE.finditer(line)]
        words = line.split()
        named = [word if word.casefold() in ("password", "passwd") else "" for word in words]  # `.netrc`
        pairs += [(before, _bare(word)) for before, word in zip(["", *named], words, strict=False)]
        if len(words) == 1 and line.count(":") >= 1 and "://" not in line:  # `.pgpass`, `.htpasswd`
            pairs.append(("password" if line.count(":") >= 4 else "", line.rpartition(":")[2]))
    for name, value in pairs:
        yield from _judged(name, value)


def _bare(value: str) -> str:
    value = value.strip().rstrip(",;")
    if value[:1] in ("'", '"', "`"):
        end = value.find(value[0], 1)
        return value[1:end] if end > 0 else value[1:]
    return re.split(r"\s#", value, maxsplit=1)[0].strip()


def _judged(name: str, value: str) -> Iterator[Value]:
    value = _SCHEME.sub("", value)
    if len(value) < SHORTEST_SAID:
        return
    if urls := list(_URL.finditer(value)):
        for url in urls:
            yield from _of_url(url)
        return
    said = _says(name)
    if name.startswith(_PUBLIC) and not any(word in name.casefold() for word in ("secret", "passw")):
        return
    if not said and ("=" in value.rstrip("=") and re.search(r"[;&?]", value)):  # `Server=…;Password=…`
        for part in re.split(r"[;&?]", value):
            key, equals, inner = part.partition("=")
            if equals and key.strip() != name:
                yield from _judged(key.strip().replace(" ", "_"), inner.strip())
        return
    if _fits(name, value, said):
        yield from _value(value, is_marked=said)


def _of_url(url: re.Match[str]) -> Iterator[Value]:
    """Yields the password (raw and decoded), a secret user name, and secrets in the query."""
    user, colon, password = (url[2] or "").partition(":")
    for secret in dict.fromkeys((password, unquote(password)) if colon else ()):
        if len(secret) >= SHORTEST_SAID and _fits("password", secret, True) and secret != user:
            yield from _value(secret, is_marked=True)
    if not password and len(user) >= 20 and _is_drawn(user):
        yield from _value(user, is_marked=True)
    if "?" in url[4]:
        for part in url[4].partition("?")[2].split("&"):
            key, _, inner = part.partition("=")
            if _says(key) and _fits(key, inner, True):
                yield from _value(inner, is_marked=True)


def _says(name: str) -> bool:
    words = [word.casefold() for word in _WORDS_OF_NAME.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words or (_is_property(words) and words[-2:] != ["secret", "id"]):
        return False
    if words[-1].startswith("key") and words[-2:-1] and words[-2] in words_of("of_a_table"):
        return False
    return any(word in words_of("secret") or word.endswith(_SAYS_AT_END) for word in words)


def _is_property(words: list[str]) -> bool:
    return not words_of("about").isdisjoint((words[-1], words[-1][:-1]))


def _fits(name: str, value: str, is_marked: bool) -> bool:
    if len(value) < (SHORTEST_SAID if is_marked else SHORTEST) or len(set(value)) < 5:
        return False
    lower = value.casefold()
    if _PLACEHOLDER.search(value[:_JUDGED]) or _ordinary_words().fullmatch(lower) or _PUBLIC_KEY.match(value):
        return False
    if lower in name.casefold():
        return False
    ordinary = len(value) <= _JUDGED and _NOT_SECRET.fullmatch(value)
    if is_marked:
        return not ordinary or (_is_drawn(value) and "/" not in value[:1])
    words = [word.casefold() for word in _WORDS_OF_NAME.findall(name)]
    if words and _is_property(words):
        return False
    return not ordinary and not _HEX_ID.fullmatch(value) and _is_drawn(value)


def _is_wordy(value: str) -> bool:
    return all(_WORD_PIECE.fullmatch(piece) for piece in _PIECE.findall(value))


def _is_drawn(value: str) -> bool:
    if any(letter.isspace() for letter in value) or len(set(value)) < 8:
        return False
    pieces = [piece for piece in _PIECE.findall(value) if not _WORD_PIECE.fullmatch(piece)]
    return sum(map(len, pieces)) >= min(8, len(value) // 2)


def _value(text: str, *, is_marked: bool) -> Iterator[Value]:
    data, plain = text.encode("utf-8", "replace"), _is_wordy(text)
    for at in range(0, len(data), PIECE):
        if at == 0 or len(data) - at >= SHORTEST:
            yield Value(data[at : at + PIECE].decode("utf-8", "ignore").encode(), is_marked, plain)


def chunks_of(data: bytes) -> list[Value]:
    """Returns rows of 48 bytes of a binary file, such as a key store, as Base64 or hexadecimal may show
    them.
    """
    rows = (data[at : at + 48] for at in range(0, min(len(data), 48 * 200), 48))
    return [Value(row) for row in rows if len(set(row)) >= 12]


def values_of_bytes(data: bytes, *, named: bool) -> list[Value]:
    text = in_letters(data)
    if "\0" in text[:8_000] or text[:8_000].count("\ufffd") > 16:
        return chunks_of(data) if named else []
    return values_in(text, named=named)


#: Between a value's characters; includes UTF-16's zero byte.
_SPACE = b" \t\r\n\0"
_LINE = late(r"[^\r\n]+")
_ALPHABETS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")
_PAGE = 4_096
#: For more values, only common encodings are searched.
_MANY = 600


class _Needle(NamedTuple):
    """An encoded value without white space. `before` and `after`: number of adjacent characters that contain
    bits of it.
    """

    data: bytes
    value: int
    before: int = 0
    after: int = 0
    apart: bool = False


class SecretValues:
    """About 10 ns per character in text without values."""

    def __init__(self, sources: Mapping[str, Iterable[Value]] | None = None) -> None:
        """`sources`: values by display name of their source."""
        each: dict[bytes, tuple[Value, str]] = {}
        for name, values in (sources or {}).items():
            for value in values:
                if value.data not in each or (value.is_marked and not each[value.data][0].is_marked):
                    each[value.data] = value, name
        ordered = sorted(each.values(), key=lambda pair: not pair[0].is_marked)[:MOST_VALUES]
        self._names = [name for _, name in ordered]
        self._needles: list[_Needle] = []
        #: Needles by 8 of their bytes (4 for short ones), with the offset.
        self._long: dict[int, list[tuple[int, int]]] = {}
        self._short: dict[int, list[tuple[int, int]]] = {}
        few = len(ordered) <= _MANY
        seen: set[bytes] = set()
        for number, (value, _) in enumerate(ordered):
            for needle in _forms(value, number, few):
                if needle.data not in seen:
                    seen.add(needle.data)
                    # Indexes a needle by its rarest bytes, with one offset per alignment of the text
                    width = 8 if len(needle.data) >= 15 else 4
                    if len(needle.data) < 2 * width - 1:
                        continue
                    table = self._long if width == 8 else self._short
                    self._needles.append(needle)
                    for first in range(width):
                        places = range(first, len(needle.data) - width + 1, width)
                        words = [(int.from_bytes(needle.data[at : at + width], _ORDER), at) for at in places]
                        word, at = min(words, key=lambda pair: len(table.get(pair[0], ())))
                        table.setdefault(word, []).append((len(self._needles) - 1, at))

    def __repr__(self) -> str:
        return f"SecretValues({len(self)})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("values are not written anywhere")

    def __len__(self) -> int:
        return len(self._names)

    def masked(self, text: str) -> tuple[str, frozenset[str]]:
        """Returns the text with `MASK` for each value and the same lines, and the names of the sources."""
        if not self._needles or len(text) < SHORTEST_SAID:
            return text, frozenset()
        text, dumped = self._without_dumps(text)
        data = text.encode("utf-8", "surrogatepass")
        found = self._spans(data)
        if not found:
            return text, dumped
        parts: list[bytes] = []
        at = 0
        for start, end in joined_spans((start, end) for start, end, _ in found):
            inside = data[start:end].decode("utf-8", "surrogatepass")
            parts += [data[at:start], _LINE.sub(MASK, inside).encode()]
            at = end
        names = frozenset(self._names[value] for _, _, value in found)
        return b"".join([*parts, data[at:]]).decode("utf-8", "surrogatepass"), names | dumped

    def _without_dumps(self, text: str) -> tuple[str, frozenset[str]]:
        """Masks dump rows (`xxd`, `hexdump`, `od`) that contain a value."""
        if not any(_ROW.search(text, at, at + _SLICE + _ADDRESS) for at in range(0, len(text), _SLICE)):
            return text, frozenset()
        parts: list[str] = []
        names: set[str] = set()
        at = 0
        for dump in _DUMPED.finditer(text):
            rows = [
                (row.start() + dump.start(), row.end() + dump.start(), row) for row in _ROW.finditer(dump[0])
            ]
            for read in (_in_hexadecimal, _in_words, _in_letters):
                bounds, data = [0], b""
                for _, _, row in rows:
                    data += read(row[1])
                    bounds.append(len(data))
                for start, end, value in self._spans(data):
                    names.add(self._names[value])
                    first, last = bisect_right(bounds, start) - 1, bisect_right(bounds, end - 1) - 1
                    for begin, stop, _ in rows[first : last + 1]:
                        if begin >= at:
                            parts += [text[at:begin], MASK]
                            at = stop
        return "".join([*parts, text[at:]]), frozenset(names)

    def masked_json(self, value: Any) -> Any:
        match value:
            case str():
                return self.masked(value)[0]
            case list() | tuple():
                return [self.masked_json(item) for item in value]
            case dict():
                return {key: self.masked_json(item) for key, item in value.items()}
        return value

    def _spans(self, data: bytes) -> list[tuple[int, int, int]]:
        slices = range(0, len(data), _SLICE)
        dense = b"".join([data[start : start + _SLICE].translate(None, _SPACE) for start in slices])
        found: set[tuple[int, int]] = set()
        for width, code, table in ((8, "Q", self._long), (4, "I", self._short)):
            words = memoryview(dense)[: len(dense) - len(dense) % width].cast(code)
            for first in range(0, len(words) if table else 0, _SLICE // width):
                here = words[first : first + _SLICE // width]
                if table.keys().isdisjoint(here):
                    continue
                for at in compress(count(first), map(table.__contains__, here)):
                    for number, offset in table[words[at]]:
                        start, needle = at * width - offset, self._needles[number]
                        if start >= 0 and dense.startswith(needle.data, start):
                            found.add((start, number))
        if not found:
            return []
        where, spans = _Where(data), []
        for start, number in sorted(found):
            needle = self._needles[number]
            end = start + len(needle.data)
            if needle.before and start and dense[start - 1] in _ALPHABETS:
                start -= 1
            if needle.after and end < len(dense) and dense[end] in _ALPHABETS:
                end += 1
                while dense[end : end + 1] == b"=":
                    end += 1
            begin, stop = where.of(start), where.of(end - 1) + 1
            if needle.apart and (_is_letter(data[begin - 1 : begin]) or _is_letter(data[stop : stop + 1])):
                continue
            spans.append((begin, stop, needle.value))
        return spans


#: Bytes per search call, which blocks other threads; scan distance for dump rows.
_SLICE, _ADDRESS = 1 << 17, 64
_DUMPED = late(
    r"^[0-9a-fA-F]{5,15}[08]:?[ \t]+\S[^\r\n]*(?:\r?\n[0-9a-fA-F]{5,15}[08]:?[ \t]+\S[^\r\n]*)*", re.MULTILINE
)
_ROW = late(r"^[0-9a-fA-F]{5,15}[08]:?[ \t]+(\S[^\r\n]*)", re.MULTILINE)
_BYTES = late(r"(?:[0-9a-fA-F]{2}){1,16}(?!\S)")
_ROW_BYTES = 16


def _in_hexadecimal(row: str) -> bytes:
    data = b""
    for word in row.split():
        if len(data) >= _ROW_BYTES or not _BYTES.fullmatch(word):
            break
        data += bytes.fromhex(word)
    return data


def _in_words(row: str) -> bytes:
    words = [word for word in row.split() if _BYTES.fullmatch(word) and len(word) == 4]
    return b"".join(bytes.fromhex(word)[::-1] for word in words)


def _in_letters(row: str) -> bytes:
    words = row.split()
    return "".join(word if len(word) == 1 else " " for word in words).encode("ascii", "replace")


_ORDER = "little" if memoryview(b"\1\0\0\0").cast("I")[0] == 1 else "big"


def _is_letter(one: bytes) -> bool:
    return one.isalnum() or one == b"_"


class _Where:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pages: dict[int, list[int]] = {}
        self._before = [0]
        for at in range(0, len(data), _PAGE):
            self._before.append(self._before[-1] + len(data[at : at + _PAGE].translate(None, _SPACE)))

    def of(self, position: int) -> int:
        page = bisect_right(self._before, position) - 1
        if page not in self._pages:
            at = page * _PAGE
            self._pages[page] = [
                at + index for index, byte in enumerate(self._data[at : at + _PAGE]) if byte not in _SPACE
            ]
        return self._pages[page][position - self._before[page]]


def _forms(value: Value, number: int, few: bool) -> Iterator[_Needle]:
    data = value.data
    for shift in range(3):
        # Base64 characters determined by these bytes alone, at an alignment of `shift` bytes
        coded = base64.b64encode(b"\0" * shift + data)
        first, last = (0, 2, 3)[shift], (shift + len(data)) * 8 // 6
        sure, after = coded[first:last], int((shift + len(data)) % 3 != 0)
        yield _Needle(sure, number, int(shift > 0), after)
        other = sure.translate(bytes.maketrans(b"+/", b"-_"))
        if other != sure:
            yield _Needle(other, number, int(shift > 0), after)
    yield _Needle(data.hex().encode(), number)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    yield _Needle(data.translate(None, _SPACE), number, apart=value.plain)
    if few:
        yield _Needle(data.hex().upper().encode(), number)
        yield _Needle(text[::-1].encode().translate(None, _SPACE), number, apart=value.plain)
        quoted = {quote(text, safe=""), quote(text, safe="/"), quote_plus(text)} - {text}
        yield from (_Needle(one.encode(), number) for one in sorted(quoted))

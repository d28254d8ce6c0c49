"""Thoughts of a model in an answer, marked by tags: filtered while streaming, and located in complete text.

Tags are case-insensitive and may have attributes. Ignores tags in edits, calls and fences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from tui_agent.answers import unified
from tui_agent.answers.lenient_json import past
from tui_agent.answers.markers import TAGS
from tui_agent.answers.values import Ledger
from tui_agent.files.lazy_regex import LazyRegex, late
from tui_agent.files.numbers import whole_number

_AFTER = late(r"(?:\s*(?:<\|(?:return|end|im_end|eot_id|eom_id)\|>|</s>))+\s*\Z")
#: Names of thought tags, also as suffix: `<think>`, with attributes or a prefix before a colon, `[THINK]`,
#: `◁think▷`.
_WORDS = (
    "think(?:s|ing)?|thoughts?|reason(?:s|ing)?|reflect(?:s|ing|ions?)?|monologues?|scratch(?:pad)?|deliberations?"
    "|brainstorm(?:ing)?|rationale|introspection|ponder(?:ing)?|critique|思考\\w{0,2}|思维|推理|推論|考え|생각|размышлени[ея]|мысли"
    "|рассуждени[ея]|denken|denkprozess|gedanken|überlegung(?:en)?|pens[ée]es?|réflexion|pensamiento|razonamiento|raciocínio|pensiero"
)
_NAMES = (
    rf"[a-z_-]{{0,20}}?(?:{_WORDS})(?:[_-]?process|[_-][a-z_-]{{1,20}}?)?|analysis|chain[_-]of[_-]\w{{1,12}}|cot|internal"
    "|musings?"
)
_SHOWN_NAMES = "details|example|examples|sample|blockquote|aside"
_LONGEST_TAG = 120
#: Leading thoughts filtered while streaming; more are located afterwards.
_MOST_LEADING = 1_000
_SPACE = late(r"\s*")
_ATTRIBUTES = r"(?:[ \t][^<>\n]{0,80})?\n?"
_OPENS = (
    rf"<[ \t]?(?=[^\W\d_][^<>]{{0,160}}>)(?P<angle>(?:[a-z]{{1,12}}+:)?(?:{_NAMES})){_ATTRIBUTES}>"
    rf"|\[(?P<square>(?:think|thought|reason)[a-z]{{0,9}})\]|◁(?P<triangle>{_NAMES})▷"
    rf"|<[|｜](?P<start>start|begin)[_▁](?:of[_▁])?(?P<bar>{_NAMES})[|｜]>"
    rf"|<[|｜](?P<plain>{_NAMES})(?:_start)?[|｜]>"
    rf"|(?P<harmony>(?:<\|start\|>assistant)?<\|channel\|>(?:{_NAMES})<\|message\|>)|(?P<unused><unused94>)thought\b"
    rf"|<\|im_start\|>(?:assistant[ \t]+)?(?P<role>{_NAMES})\b|<\|channel>(?P<channel>{_NAMES})\b"
)
_THOUGHT = late(rf"\s*(?:{_OPENS})", re.IGNORECASE)
_HEAD = late(r"\s*(?:<\|start\|>assistant)?(?:<\|channel\|>(?:final|commentary)<\|message\|>)?")
_HEADS = (
    "<|start|>assistant<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>final<|message|>",
    "<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|channel|>commentary<|message|>",
)  # fmt: skip
_MAY_OPEN = late(
    r"(?:<(?:[a-z]{1,12}:?[a-z_-]{0,40}(?:[ \t][^<>\n]{0,80})?)?"
    r"|<unused9?4?>?[though]{0,7}|<[|｜][a-z_▁]{0,40}[|｜]?|\[[a-z_]{0,20}|◁[a-z_]{0,20}"
    r"|<\|(?:im_start\|>(?:assistant[ \t]*)?|channel>|channel\|>)[a-z_-]{0,40})\Z",
    re.IGNORECASE,
)
_HARMONY_END = late(r"<\|end\|>|(?=<\|start\|>|<\|channel\|>)")
_LONGEST_END = 40
_UNOPENED_NAMES = (
    r"[a-z_]{0,12}(?:think|thought|reasoning|reflection|scratchpad|monologue)[a-z_]{0,12}|analysis|cot"
)
_UNOPENED_END = late(
    rf"(?:</(?=[a-z:_]{{3,60}}>)(?:[a-z]{{1,12}}+:)?(?:{_UNOPENED_NAMES})>|\[/THINK\]|◁/think▷)[ \t]*(?:\r?\n|\Z)",
    re.I,
)


def _end_of(opening: re.Match[str]) -> re.Pattern[str] | LazyRegex:
    if opening["harmony"]:
        return _HARMONY_END
    for sign, end in (("unused", "<unused95>"), ("role", r"<\|im_end\|>"), ("channel", r"<channel\|>")):
        if opening[sign]:
            return re.compile(end)
    kind = next(kind for kind in ("angle", "square", "triangle", "bar", "plain") if opening[kind])
    name = re.escape(opening[kind].lower().removesuffix("_start"))
    ends = {"angle": rf"<[ \t]?/[ \t]?{name}\s*>", "square": rf"\[/{name}\]", "triangle": rf"◁/{name}▷"}
    other = rf"<[|｜](?:end[_▁](?:of[_▁])?|/){name}[|｜]>|<[|｜]{name}_end[|｜]>|</{name}>"
    return re.compile(ends.get(kind, other), re.IGNORECASE)


class ThoughtFilter:
    """Separates leading thoughts from a streaming answer."""

    def __init__(self) -> None:
        self._held = ""
        self._ends: re.Pattern[str] | LazyRegex | None = None
        self._begun = False
        self._thoughts: list[str] = []
        self._count = self._told = 0

    @property
    def thought(self) -> str:
        return "".join(self._thoughts)

    def new_thought(self) -> str:
        new, self._told = "".join(self._thoughts[self._told :]), len(self._thoughts)
        return new

    def feed(self, piece: str) -> str:
        if self._begun:
            return piece
        held, at = (self._held + piece).removeprefix("\ufeff"), 0
        passed: list[str] = []
        while True:
            if self._ends is not None:
                end = self._ends.search(held, at)
                if end is None:
                    cut = max(at, len(held) - _LONGEST_END)
                    self._thoughts.append(held[at:cut])
                    self._held = held[cut:]
                    return "".join(passed)
                self._thoughts.append(held[at : end.start()])
                at, self._ends = end.end(), None
                self._count += 1
            bare = past(_SPACE, held, at)
            passed.append(held[at:bare])
            at = bare
            opening = _THOUGHT.match(held, at) if self._count < _MOST_LEADING else None
            if opening is not None:
                self._ends = _end_of(opening)
                at = opening.end()
                continue
            self._held = held[at:]
            begun = held[at : at + _LONGEST_TAG]
            may_begin = len(begun) < _LONGEST_TAG and self._count < _MOST_LEADING
            if may_begin and (any(head.startswith(begun) for head in _HEADS) or _MAY_OPEN.match(begun)):
                return "".join(passed)
            return "".join(passed) + self.rest()

    def rest(self) -> str:
        self._begun = True
        if self._ends is not None:
            thought = self.thought + self._held
            other = _UNOPENED_END.search(thought) if "/" in thought else None
            if other:
                self._thoughts[:], self._told = [thought[: other.start()]], 1
                self._held, self._ends = thought[other.end() :], None
            else:
                self._thoughts.append(self._held)
                self._held = ""
        held, self._held = self._held, ""
        head = _HEAD.match(held)
        return held[head.end() :] if head and head[0].strip() else held


_SHOWN = rf"<(?P<shown>{_SHOWN_NAMES}){_ATTRIBUTES}>|(?P<comment><!--|/\*)"
#: Tags around an answer, and HTML elements. Others have an unknown purpose.
_PLAIN_NAMES = (
    "answer|final|response|output|results?|reply|solution|implementation|assistant|message|updates?|actions?|summary"
    "|artifacts|task|steps?|a|abbr|article|b|body|br|button|center|dd|div|dl|dt|em|fieldset|figure|font|footer|form"
    "|h[1-6]|head|header|hr|html|i|img|ins|kbd|label|li|link|main|mark|nav|ol|p|picture|s|script|section|small|span"
    "|strong|style|sub|sup|svg|table|tbody|td|tfoot|th|thead|title|tr|u|ul"
)
_PLAIN = late(rf"(?:{_PLAIN_NAMES}|{TAGS})|.*(?:tool|function|call|answer|patch|diff|edit).*", re.IGNORECASE)
_OTHER = (
    rf"<(?=[^\W\d_][^<>\n]{{0,160}}>)(?P<other>[^\W\d_][\w:.-]{{0,40}}){_ATTRIBUTES}>"
    r"|\[(?P<box>[^\W\d_]\w{1,20})\](?![(:\[])"
)
#: Signs around such a name: `{{thinking}}` to `{{/thinking}}`, `<!--think-->`. Without a closing sign the
#: text is not a thought.
_PAIRS = {
    "<!--": "-->", "/*": "*/", "{{": "}}", "{%": "%}", "{": "}", "[[": "]]", "[": "]", "((": "))", "(": ")",
    "«": "»", "【": "】", "《": "》", "⟨": "⟩", "&lt;": "&gt;", "<<": ">>", "\\<": "\\>",
    "%%": "%%", "***": "***", "**": "**",
}  # fmt: skip
_MARKED = (
    rf"(?P<mark>{'|'.join(map(re.escape, _PAIRS))})[ \t]?#?(?P<marked>{_NAMES}):?[ \t]?"
    rf"(?:{'|'.join(sorted(map(re.escape, {*_PAIRS.values()})))})"
    rf"|(?P<colons>:{{3,}})[ \t]?(?:\w{{1,12}}[ \t])?(?:{_NAMES})[ \t]*$"
    r"|(?P<dots>thinking(?:\.{3}|…))[ \t]*$"
)
_BEGINNING = late(
    r"^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:(?P<fence>`{3,}|~{3,})"
    r"|(?P<block>(?P<sign><{5,9}|-{5,9}) ?SEARCH>?[ \t]*$)|(?P<patch>\*\*\* Begin Patch)"
    r"|(?P<hunk>@@ )|(?P<call><tool_call>|<function=|<function_calls>|\[TOOL_CALLS\])"
    rf"|{_OPENS}|{_MARKED}"
    r"|(?P<json>[{\[][ \t]*(?=[\"'{\[\n]))"
    rf"|{_SHOWN}|{_OTHER})",
    re.MULTILINE | re.IGNORECASE,
)
_ANY = late(
    r"^[ \t]*(?:[-*+\d.)]{1,9}[ \t]+)?(?:<[ \t]?[!|｜\w]|\[[^\W\d_]\w|◁|/\*|thinking(?:\.{3}|…))"
    rf"|^[ \t]*(?:[\[({{«【《⟨%*:]{{1,3}}|\\?<<?|&lt;)[ \t]?#?(?:\w{{1,12}}[ \t])?(?:{_NAMES})"
    rf"|^[ \t]*[`~]{{3,}}[ \t]*(?:{_NAMES})[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_THOUGHT_FENCE = late(rf"(?:{_NAMES})[ \t]*$", re.IGNORECASE | re.MULTILINE)
_MOST_OPEN = 40
#: Closing signs and stems; every text with an aside contains one.
_ENDS = (
    "</", "< /", "-->", "*/", "[/", "◁", "<|", "<｜", "<unused95>", "思", "推", "мысл", "рассужд", "pens",
    "denken",
)  # fmt: skip
_STEMS = (
    "think", "thought", "reason", "reflect", "monolog", "scratch", "deliberat", "brainstorm", "rationale",
)  # fmt: skip
_STEMS += ("introspect", "ponder", "critique", "analysis", "chain", "cot", "internal", "musing")
_MOST_TRIES = 20_000
_SLICE = 200_000
_LINE = late(r"[^\n]*(?:\n|\Z)")
_DIFF_LINE = late(r"(?:[ +\-\\@][^\n]*|(?:diff --git |index |--- |\+\+\+ )[^\n]*)?(?:\n|\Z)")
_CALL_ENDS = {
    "<tool_call>": "</tool_call>",
    "<function=": "</function>",
    "<function_calls>": "</function_calls>",
}


class HiddenSpan(Struct, frozen=True):
    """A thought, or something only shown. `tag` is the name of an unknown tag, whose content may be part of
    the answer."""

    begin: int
    end: int
    thought: bool
    text: str
    ended: bool = True
    tag: str = ""


def hidden_spans(text: str) -> Iterator[HiddenSpan]:
    """Yields thoughts and comments that start a line, outside constructs with their own content."""
    at = tries = 0
    missing: set[str] = set()
    if not any(sign in text for sign in _ENDS) and not any(map(text.lower().__contains__, _STEMS)):
        return
    if not _next(_ANY, text, 0):
        return
    while at < len(text) and tries < _MOST_TRIES and (found := _next(_BEGINNING, text, at)):
        tries += 1
        if own := _own_end(text, found, missing):
            if found["fence"] and _THOUGHT_FENCE.match(text, found.end()):
                yield HiddenSpan(found.start("fence"), own, True, text[found.end() : own])
            at = own
            continue
        tag = found["other"] or found["box"] or ""
        if tag and (_PLAIN.fullmatch(tag) or len(missing) > _MOST_OPEN):
            at = found.end()
            continue
        ends = _closing(found)
        if ends.pattern in missing:
            at = found.end()
            continue
        thought = not (found["shown"] or found["comment"] or tag)
        certain = thought and not (found["marked"] or found["colons"] or found["dots"])
        end = ends.search(text, found.end()) or (_UNOPENED_END.search(text, found.end()) if certain else None)
        if end is None and certain and not text[found.end() : _line_end(text, found.end())].strip():
            yield HiddenSpan(
                found.end() - len(found[0].lstrip()), len(text), True, text[found.end() :], False
            )
            return
        if end is None:
            missing.add(ends.pattern)
            at = found.end()
            continue
        begin = found.end() - len(found[0].lstrip())
        head = _HEAD.match(text, end.end()) if found["harmony"] else None
        close = head.end() if head and head[0].strip() else end.end()
        yield HiddenSpan(begin, close, thought, text[found.end() : end.start()], tag=tag)
        at = close


def _next(wanted: LazyRegex, text: str, at: int) -> re.Match[str] | None:
    """Searches in slices, so that no call holds the interpreter lock for long."""
    while at < len(text):
        end = _line_end(text, at + _SLICE)
        if found := wanted.search(text, at, end):
            return found
        at = end
    return None


def _closing(found: re.Match[str]) -> re.Pattern[str] | LazyRegex:
    if found["comment"]:
        return re.compile("-->" if found["comment"] == "<!--" else r"\*/")
    if found["dots"]:
        return re.compile(r"(?:\.{3}|…)[ \t]?done thinking\.?")
    if found["box"]:
        return re.compile(rf"\[/{found['box']}\]", re.IGNORECASE)
    if found["colons"]:
        return re.compile(rf"^[ \t]*{found['colons']}[ \t]*$", re.MULTILINE)
    if found["marked"]:
        mark, name = re.escape(found["mark"]), re.escape(found["marked"])
        ends = rf"{mark}[ \t]?(?:/|end[_ ]?)[ \t]?{name}[ \t]?{re.escape(_PAIRS[found['mark']])}"
        return re.compile(ends, re.IGNORECASE)
    if name := found["shown"] or found["other"]:
        return re.compile(rf"</{re.escape(name)}[ \t]*>", re.IGNORECASE)
    return _end_of(found)


def _own_end(text: str, found: re.Match[str], missing: set[str]) -> int:
    if found["fence"]:
        mark = found["fence"]
        return _after(text, found, rf"^[ \t]*{mark[0]}{{{len(mark)},}}[ \t]*$", missing)
    if found["block"]:
        sign = ">" if found["sign"][0] == "<" else r"\+"
        return _after(text, found, rf"^{sign}{{5,9}} ?REPLACE", missing)
    if found["patch"]:
        return _after(text, found, r"^\*\*\* End Patch", missing)
    if found["call"]:
        close = _CALL_ENDS.get(found["call"].lower())
        return _after(text, found, re.escape(close), missing) if close else _line_end(text, found.end())
    if found["json"]:
        at = found.end() - len(found["json"])
        depth = 0
        for piece in _JSON_PIECE.finditer(text, at) if "json" not in missing else ():
            if piece[0] in "{[":
                depth += 1
            elif piece[0] in "}]":
                depth -= 1
                if depth <= 0:
                    return piece.end()
        missing.add("json")
        return at + 1
    if not found["hunk"]:
        return 0
    at = found.end() - len(found["hunk"])
    counts = unified.HEADER.match(text, at)
    old, new = (whole_number(counts[number], 1) for number in (2, 4)) if counts else (0, 0)
    at = _line_end(text, at)
    while at < len(text) and (
        line := _DIFF_LINE.match(text, at) or ((old > 0 or new > 0) and _LINE.match(text, at))
    ):
        mark = line[0][:1]
        if line.end() == at or line[0].startswith("@@") or (mark not in "+- \\" and _THOUGHT.match(line[0])):
            break
        old, new = old - (mark not in ("+", "\\")), new - (mark not in ("-", "\\"))
        at = line.end()
    return at


def _after(text: str, found: re.Match[str], ends: str, missing: set[str]) -> int:
    if ends not in missing:
        end = re.compile(ends, re.MULTILINE).search(text, found.end())
        if end is not None:
            return end.end()
        missing.add(ends)
    return len(text) if found["fence"] else found.end()


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


_JSON_PIECE = late(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.DOTALL)


def unopened_thought_end(text: str) -> int:
    signs = any(sign in text for sign in ("</", "[/", "◁/"))
    end = _next(_UNOPENED_END, text, 0) if signs else None
    if end is None:
        return 0
    before = text[: end.start()]
    name = end[0].strip().strip("</>[]◁▷").lower()
    opened = any(f"{sign}{name}" in before.lower() for sign in ("<", "[", "◁"))
    return 0 if opened or before.count("```") % 2 else end.end()


class Thoughts(Struct, frozen=True):
    text: str
    unfinished: bool
    wrapped: tuple[HiddenSpan, ...]


def extract_thoughts(ledger: Ledger) -> Thoughts:
    """Also claims comments, examples and unknown tags as shown text."""
    leading = ThoughtFilter()
    rest = (leading.feed(ledger.text) + leading.rest()).lstrip()
    begin = len(ledger.text) - len(rest)
    unfinished = not rest and bool(leading.thought)
    if ledger.text[:begin].strip():
        ledger.claim(0, begin, "thought")
    left = ledger.left()
    begin = unopened_thought_end(left.text)
    thoughts = [leading.thought, left.text[:begin]]
    left.claim(0, begin, "thought")
    left = ledger.left() if begin else left
    wrapped: list[HiddenSpan] = []
    for aside in hidden_spans(left.text):
        left.claim(aside.begin, aside.end, "thought" if aside.thought else "shown")
        if aside.thought:
            thoughts.append(aside.text)
        elif aside.tag:
            wrapped.append(aside)
        unfinished = unfinished or not aside.ended
    text = "\n\n".join(thought for thought in thoughts if thought.strip())
    return Thoughts(text, unfinished, tuple(wrapped))


def without_end(text: str) -> str:
    tail = text[-_LONGEST_END:]
    return text[:-_LONGEST_END] + _AFTER.sub("", tail) if ">" in tail else text

"""Function calls and replies written as text, in the formats of local models.

`<tool_call>` (Hermes, Qwen), `<function=…>` (Qwen-Coder), `[TOOL_CALLS]` (Mistral), `<|python_tag|>` and
`{"name", "parameters"}` (Llama), fenced `tool_code` (Gemma), harmony's channels, `{"tool_calls": […]}`,
structured replies, and lists of changes: bare, fenced, in prose, or in another wrapper.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers import lenient_json
from tui_agent.answers.examples import Fences, is_example, surrounding_text
from tui_agent.answers.lenient_json import past
from tui_agent.answers.schema import by_path, camel, near_names
from tui_agent.answers.thinking_tags import without_end
from tui_agent.files.lazy_regex import late

_QUOTED = r"[\"'“”‘’\\]{1,4}"
_TEXT = "(?:str|string|text|code|content|lines?)"
_CHANGE_SIGN = late(rf"(?i){_QUOTED}(?:file[_-]?changes|edits){_QUOTED}\s*:\s*\[")
_PATH = late(rf"(?i){_QUOTED}(?:path|file|file[_-]?path|file[_-]?name){_QUOTED}\s*:")
_OLD = late(rf"(?i){_QUOTED}(?:search|find|old(?:[_-]?{_TEXT})?){_QUOTED}\s*:")
_NEW = late(rf"(?i){_QUOTED}(?:replace|replacement|new(?:[_-]?{_TEXT})?){_QUOTED}\s*:")


def looks_like_a_change(text: str, names: Collection[str]) -> bool:
    if "{" not in text and "(" not in text:
        return False
    low = text.lower()
    named = "path" in low or "file" in low
    if (
        named
        and (_CHANGE_SIGN.search(text) or (_OLD.search(text) and _NEW.search(text)))
        and _PATH.search(text)
    ):
        return True
    there = [name for name in names if name.partition("_")[0].lower() in low]
    called = "|".join(re.escape(name).replace("_", "[_-]?") for name in there)
    return bool(called) and bool(
        re.search(
            rf"(?im){_QUOTED}(?:name|function|tool|tool_name){_QUOTED}\s*:\s*{_QUOTED}[\w.]{{0,40}}(?:{called}){_QUOTED}"
            rf"|{_QUOTED}[\w.]{{0,40}}(?:{called}){_QUOTED}\s*:\s*[\[{{]"
            rf"|^[ \t]*(?:print\()?(?:\w{{1,40}}\.)?(?:{called})\(\w+ ?=",
            text,
        )
    )


#: Places tried as JSON; characters of a call in Python syntax.
_MOST_TRIES, _LONGEST_CODE = 10, 40_000
_MOST_CALLS = 1_000
_MOST_VALUES = 5_000
_LONG = 200_000
_SIGNS = ("<tool_call>", "<function=", "tool_code", "[TOOL_CALLS]", "<|python_tag|>", "<|channel|>commentary")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "kwargs")
_WRAPPERS = frozenset({"response", "reply", "result", "output", "answer", "json", "data", *_ARGUMENTS})
#: Keys that only a reply has, by exact and similar names.
_LISTS = frozenset({
    "fileChanges", "fileRequests", "directoryRequests", "subTasks", "nextSteps", "todos", "searches",
})  # fmt: skip
_CHANGES = ("fileChanges", "changes")
_FORMS = frozenset({"edits", "diff", "content", "delete", "renameTo", "search"})

_OPENING = late(
    r"^[ \t]*(?:(?P<tag><tool_call>)|(?=<function=)(?P<function>)|```[ \t]*(?P<code>tool_code)\s*?$)"
    r"|(?P<tag_inside><tool_call>)(?=\s*[{\[<])"
    r"|(?P<mistral>\[TOOL_CALLS\])|(?P<llama><\|python_tag\|>)"
    r"|(?:<\|start\|>assistant)?<\|channel\|>commentary to=(?:functions\.)?(?P<harmony>[\w.-]+)[^<]{0,40}"
    r"(?:<\|constrain\|>\w{1,20})?<\|message\|>",
    re.MULTILINE,
)
_FUNCTION = late(r"\s*<function=([\w.-]{1,80})>")
_PARAMETER = late(r"\s*<parameter=([\w.-]{1,80})>\n?")
_NAMED = late(r"\s*([\w.-]{1,80})(?:\[CALL_ID\]\w{1,40})?(?:\[ARGS\])?\s*(?=\{)")
_CLOSING = late(r"\s*(?:</function>\s*)?(?:</tool_call>|<\|call\|>|<\|eot_id\|>|<\|eom_id\|>|</s>)")
_JSON = late(
    r"(?:^[ \t,;]*+|(?<=[\w)]: )|^[ \t]*+(?:\d{1,2}[.)]|[-*+])[ \t]++)"
    r"(?:(?P<fence>`{3,}+|~{3,}+)[ \t]*+\w*+[ \t]*+\r?\n\s*+)?(?P<sign>[\[{])",
    re.MULTILINE,
)
_FENCE_END = late(r"\s*(?:`{3,}|~{3,})[ \t]*(?:\n|\Z)")
_SPACE = late(r"[\s;,]*")


class TextCall(Struct, frozen=True):
    """`shown`: the surrounding words mark it as an example or as not done."""

    name: str
    arguments: str
    shown: bool = False


class TextReply(Struct, frozen=True):
    value: dict[str, Any]
    shown: bool = False


class CallsInText(Struct, frozen=True):
    """`taken` are their ranges. `fault` describes an unreadable call, `doubt` an ambiguous one."""

    calls: tuple[TextCall, ...] = ()
    replies: tuple[TextReply, ...] = ()
    taken: tuple[tuple[int, int], ...] = ()
    fault: str = ""
    doubt: str = ""


def find(text: str, names: Collection[str]) -> CallsInText:
    """Returns complete and unambiguous calls of functions with these `names`, without duplicates, and
    replies.
    """
    fences = Fences(text)
    named = {_squeezed(name): name for name in names}
    calls: list[TextCall] = []
    taken: list[tuple[int, int]] = []
    fault = ""
    at = failed = 0
    sought = explicit(text)
    while sought and failed < _MOST_TRIES and (opening := _OPENING.search(text, at)):
        if len(calls) > _MOST_CALLS:
            fault = f"it holds more than {_MOST_CALLS:,} calls as text, and only those are read"
            calls = calls[:_MOST_CALLS]
            break
        sign = opening.end() - len(opening[0].lstrip())
        if not opening["code"] and fences.quotes(sign):
            at = max(opening.end(), opening.start() + 1)
            continue
        read = _explicit(text, opening, names)
        if read is None:
            failed += 1
            fault = "a call in it is written as text, in a form that cannot be read"
            at = max(opening.end(), opening.start() + 1)
            continue
        shown = len(calls) < _MOST_CALLS and is_example(
            *surrounding_text(text, opening.start(), read[1], taken[-1][1] if taken else 0)
        )
        calls += [replace(call, shown=shown) for call in read[0]]
        taken.append((opening.start(), read[1]))
        at = read[1]
    found = CallsInText(tuple(calls), (), tuple(taken), fault)
    if not fault:
        found = _implicit(text, named.keys(), fences, calls, taken)
    own = dict.fromkeys(
        replace(call, name=named.get(_squeezed(call.name), call.name)) for call in found.calls
    )
    replies = {(json.dumps(one.value, sort_keys=True), one.shown): one for one in reversed(found.replies)}
    found = replace(found, calls=tuple(own), replies=tuple(reversed(replies.values())))
    if found.calls or found.replies or found.fault or fences.quoted or not looks_like_a_change(text, names):
        return found
    return replace(found, doubt="what looks like a change in it is in a form that cannot be read")


def explicit(text: str) -> bool:
    return any(sign in text for sign in _SIGNS)


def _explicit(text: str, opening: re.Match[str], names: Collection[str]) -> tuple[list[TextCall], int] | None:
    at = opening.end()
    if opening["code"]:
        end = text.find("\n```", at)
        if end < 0 or end - at > _LONGEST_CODE:
            return None
        try:
            code = ast.parse(text[at:end].strip()).body
            made = [_python_call(line.value, names) for line in code if isinstance(line, ast.Expr)]
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return None
        return (made, end + 4) if made else None
    tag = opening["tag"] or opening["tag_inside"]
    if opening["function"] is not None or (tag and _FUNCTION.match(text, at)):
        # Each parameter is JSON if valid, otherwise text.
        begun = _FUNCTION.match(text, at)
        values: dict[str, Any] = {}
        at = begun.end() if begun else at
        while parameter := _PARAMETER.match(text, at):
            end = text.find("</parameter>", parameter.end())
            if end < 0:
                return None
            raw = text[parameter.end() : end]
            structured = raw.lstrip()[:1] in ("[", "{")
            read = _value(text, past(_SPACE, text, parameter.end())) if structured else None
            values[parameter[1]] = read[0] if read and read[1] <= end else raw.removesuffix("\n")
            at = end + len("</parameter>")
        end = text.find("</function>", at)
        if begun is None or end < 0 or text[at:end].strip():
            return None
        return [_call(begun[1], values)], past(_CLOSING, text, end)
    if opening["harmony"]:
        read = _value(text, at)
        return None if read is None else ([_call(opening["harmony"], read[0])], past(_CLOSING, text, read[1]))
    calls: list[TextCall] = []
    while True:
        named = _NAMED.match(text, at) if opening["mistral"] else None
        read = _value(text, named.end() if named else past(_SPACE, text, at))
        found = None
        if read is not None:
            found = [_call(named[1], read[0])] if named else _calls(read[0], None)
        if read is None or not found:
            break
        calls += found
        at = past(_CLOSING, text, read[1])
    return (calls, at) if calls else None


def _python_call(node: ast.expr, names: Collection[str]) -> TextCall:
    if not isinstance(node, ast.Call):
        raise ValueError("not a call")
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "print" and len(node.args) == 1:
        return _python_call(node.args[0], names)
    if name not in names or node.args:
        raise ValueError("not one of our functions")
    return _call(name, {word.arg: _literal(word.value) for word in node.keywords if word.arg})


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {
                ast.literal_eval(key): _literal(value) for key, value in zip(keys, values, strict=True) if key
            }
        case ast.Call(args=[], keywords=words):
            return {word.arg: _literal(word.value) for word in words if word.arg}
    return ast.literal_eval(node)


def _implicit(
    text: str,
    names: Collection[str],
    fences: Fences,
    calls: list[TextCall],
    taken: list[tuple[int, int]],
) -> CallsInText:
    values = list(islice(_values(text, fences, taken), _MOST_VALUES + 1)) if "{" in text else []
    fault = ""
    if len(values) > _MOST_VALUES:
        fault = f"it holds more than {_MOST_VALUES:,} JSON values, and only those are read"
        values.pop()
    edges = [0, *(edge for begin, end, _ in sorted((*values, *((*place, 0) for place in taken)), key=itemgetter(0))
                  for edge in (begin, end)), len(text)]  # fmt: skip
    between = "".join(
        text[begin:end] for begin, end in zip(edges[::2], edges[1::2], strict=True) if begin < end
    )
    alone = not without_end(between).strip("`~ \r\n,;")
    replies: list[TextReply] = []
    for begin, end, value in values:
        found = _calls(value, names)
        reply = None if found else _reply(value, alone)
        if not found and reply is None:
            continue
        floor = taken[-1][1] if replies or calls else 0
        shown = (
            not alone and len(taken) < _MOST_CALLS and is_example(*surrounding_text(text, begin, end, floor))
        )
        if len(calls) < _MOST_CALLS:
            calls += [replace(call, shown=shown) for call in found]
        if reply is not None:
            replies.append(TextReply(reply, shown))
        taken.append((begin, end))
    return CallsInText(tuple(calls), tuple(replies), tuple(taken), fault)


def _values(text: str, fences: Fences, taken: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, Any]]:
    floor = tries = 0
    places = iter(sorted(taken))
    place = next(places, None)
    at = 0
    while tries < _MOST_TRIES and (match := _JSON.search(text, at)):
        at = max(match.start("sign"), match.start() + 1)
        while place is not None and place[1] <= match.start("sign"):
            place = next(places, None)
        if place is not None and place[0] <= match.start("sign"):
            at = place[1]
            continue
        if fences.quotes(match.start("sign")):
            continue
        read = _value(text, match.start("sign"))
        if read is None:
            tries += 1
            if len(text) - match.start() > _LONG:
                return
            continue
        closes = match["fence"] and fences.holds(match.start("fence") + 1)
        fence = "" if closes else match["fence"]
        group = [(max(match.start("sign") if closes else match.start(), floor), read[1], read[0])]
        while (
            len(group) <= _MOST_VALUES
            and (more := _value(text, past(_SPACE, text, group[-1][1]))) is not None
        ):
            group.append((group[-1][1], more[1], more[0]))
        begin, end, value = group.pop()
        at = floor = past(_FENCE_END, text, end) if fence else end
        yield from group
        yield begin, floor, value


def _value(text: str, at: int) -> tuple[Any, int] | None:
    if text[at : at + 1] not in ("{", "["):
        return None
    try:
        return lenient_json.value_at(text, at)
    except (ValueError, RecursionError):
        read = lenient_json.read(text, at)
        return (read.value, read.end) if read.whole else None


def _call(name: str, arguments: Any) -> TextCall:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return TextCall(name.rpartition(".")[2], written)


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].lower())


def _calls(value: Any, names: Collection[str] | None, depth: int = 0) -> list[TextCall]:
    """Returns calls of functions in `names` (compared without punctuation), or of any."""
    if isinstance(value, list):
        each = [_calls(one, names, depth) for one in value] if value and depth < 3 else []
        return [call for calls in each for call in calls] if all(each) else []
    if not isinstance(value, dict) or depth > 3:
        return []
    for key in ("tool_calls", "function_calls", "toolCalls", "function_call", "function"):
        if isinstance(value.get(key), (list, dict)):
            return _calls(value[key], names, depth + 1)
    name = next(
        (value[k] for k in ("name", "tool_name", "function", "tool") if isinstance(value.get(k), str)), ""
    )
    arguments = next(
        (value[key] for key in _ARGUMENTS if isinstance(value.get(key), (dict, list, str))), None
    )
    if name and arguments is not None and (names is None or _squeezed(name) in names):
        return [_call(name, arguments)]
    if len(value) == 1:
        [(key, inner)] = value.items()
        if isinstance(inner, (dict, list)) and _squeezed(key) in (names or ()):
            return [_call(key, inner)]
        if key in _WRAPPERS:
            return _calls(inner, names, depth + 1)
    return []


def own_keys(value: dict[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, entry in value.items():
        lenient_json.add_merging(named, camel(key), by_path(entry) if camel(key) in _CHANGES else entry)
    changes = named.get("changes")
    if isinstance(changes, list) and all(map(_is_change, changes)):
        lenient_json.add_merging(named, "fileChanges", named.pop("changes"))
    return named


def _reply(value: Any, alone: bool, depth: int = 0) -> dict[str, Any] | None:
    if isinstance(value, list) and value and all(map(_is_change, value)):
        return {"fileChanges": value}
    if not isinstance(value, dict):
        return None
    if _is_change(value) and (alone or not {"content", "delete"} & value.keys()):
        return {"fileChanges": [value]}
    named = own_keys(value)
    lists = [key for key in _LISTS if isinstance(named.get(key), list)]
    if "fileChanges" in lists or (alone and ("summary" in named or lists)) or ("summary" in named and lists):
        return named
    if len(value) == 1 and depth < 2:
        [(key, inner)] = value.items()
        return _reply(inner, alone, depth + 1) if key in _WRAPPERS else None
    return None


def _is_change(entry: Any) -> bool:
    return isinstance(entry, dict) and "path" in (near := near_names(entry)) and bool(_FORMS & near.keys())


_HIDDEN = late(
    r"^[ \t]{0,40}+(?:<tool_call>|<function=|<function_calls>|```[ \t]*tool_code)|\[TOOL_CALLS\]|<\|python_tag\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>commentary",
    re.MULTILINE,
)
_OPENED = late(
    r"^(?<![\[{]\n)[ \t]{0,40}+(?:(?P<fence>`{3,}+|~{3,}+)\w*+[ \t]{0,40}+\n\s{0,40}+)?"
    r"(?:[\[{]\s{0,40}+){1,4}+(?:\"|\Z)",
    re.MULTILINE,
)
_HIDING = ("<tool_call>", "<function", "tool_code", "[TOOL_CALLS]", "<|python_tag|>", "<|channel|>commentary")
_LONGEST_TAIL = 400
_PERHAPS = late(
    r"(?:^[ \t]{0,40}(?:[`~]{1,4}\w*[ \t]{0,40}(?:\n\s{0,40})?)?"
    r"|(?<!<)[<\[][\w|<>=/]{0,40}+(?:(?<=commentary)[^<\n]{0,40}+)?)\Z",
    re.MULTILINE,
)
_HINT = late(
    r'"(?:name|function|tool_calls|function_call|arguments|parameters|fileChanges|file_changes|changes|path|file|summary'
    r'|edits|search|response|result)"'
)
#: Characters needed to classify a call block.
_TELLING = 400


class CallFilter:
    def __init__(self, names: Collection[str]) -> None:
        self._off = not names
        self._held = ""
        self._hides = False
        #: Number of fences without calls; above the limit of `find`, later fences are ignored.
        self._passed = 0

    def feed(self, piece: str) -> str:
        if self._off or self._hides:
            return "" if self._hides else piece
        self._held += piece
        held = self._held
        sign = _HIDDEN.search(held) if any(it in held for it in _HIDING) else None
        if sign is not None:
            return self._hide(sign.start())
        at = 0
        while self._passed < _MOST_VALUES and ("{" in held or "[" in held):
            opened = _OPENED.search(held, at)
            if opened is None:
                break
            closed = _FENCE_END.search(held, opened.end()) if opened["fence"] else None
            if _HINT.search(held, opened.start(), closed.start() if closed else len(held)):
                return self._hide(opened.start())
            if closed is None:
                long = len(held) - opened.start() > _TELLING
                return self._pass(len(held) if long else opened.start())
            at = closed.end()
            self._passed += 1
        tail = _PERHAPS.search(held, max(at, len(held) - _LONGEST_TAIL))
        return self._pass(tail.start() if tail else len(held))

    def _hide(self, at: int) -> str:
        self._hides = True
        return self._pass(at)

    def _pass(self, at: int) -> str:
        passed, self._held = self._held[:at], self._held[at:]
        return passed

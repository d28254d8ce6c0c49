"""Token budgets: resets, condensing of old messages, and limits."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from tui_agent.model.parts import CallPart, Message, Part, TextPart, message_of, parts_of

#: Share of the room after condensing that recent messages may keep.
KEPT_SHARE = 0.3


class TokenShares(Struct, frozen=True):
    window: int
    reset_at: float = 0.8
    reset_to: float = 0.5
    condense_at: float = 0.9
    keep_on_failure: float = 0.75


def filling(costs: Sequence[int], room: int, near: int, far: int, firm: int = 0) -> list[int]:
    """Returns indexes of `costs`, in descending priority, that fill `room` to within `near`. The first
    `firm` are selected whenever they fit. A later item replaces an earlier one only if the room could not
    be filled otherwise. If it cannot be filled, selects the nearest sum, at most `far` above `room`.
    """
    taken = []
    for place, cost in enumerate(costs[:firm]):
        if cost <= room + near:
            taken.append(place)
            room -= cost
    if room + far < 0:
        return taken
    rest = costs[firm:]
    within = (1 << room + far + 1) - 1
    reached = [1]  # bit n: some of the remaining items sum to n
    for cost in reversed(rest):
        reached.append((reached[-1] | reached[-1] << cost) & within)
    goal = _nearest(reached.pop(), room, near)
    spent = 0
    for place, cost in enumerate(rest, firm):
        if reached.pop() << spent + cost & goal:
            taken.append(place)
            spent += cost
    return taken


def _nearest(sums: int, room: int, near: int) -> int:
    lowest = max(0, room - near)
    if full := sums >> lowest << lowest & (1 << max(0, room + near + 1)) - 1:
        return full
    below = (sums & (1 << lowest) - 1).bit_length() - 1
    above = sums >> lowest << lowest
    over = (above & -above).bit_length() - 1
    return 1 << (over if above and (below < 0 or over - room < room - below) else below)


def newest(messages: Sequence[Message], sizes: Sequence[int], room: int) -> int:
    """Returns the index of the first message that fits into `room`. Keeps the last exchange."""
    starts = [place for place, message in enumerate(messages) if message["role"] == "user"]
    if not starts:
        return len(messages)
    fitting = [start for start in starts if sum(sizes[start:]) <= room]
    return fitting[0] if fitting else starts[-1]


def newest_share(messages: Sequence[Message], share: float) -> int:
    """Drops at least one message and keeps calls with their results."""
    wanted = max(1, len(messages) - round(len(messages) * share))
    starts = [place for place, message in enumerate(messages) if place and message["role"] != "tool"]
    return min(starts, key=lambda place: (abs(place - wanted), place), default=len(messages))


def newest_within(messages: Sequence[Message], tokens: Sequence[int], most: int, start: int = 0) -> int:
    """Like `newest_share`, for at most `most` tokens from index `start`."""
    for place in range(start, len(messages)):
        if sum(tokens[place:]) <= most and (place == start or messages[place]["role"] != "tool"):
            return place
    return len(messages)


class Spending(Struct, frozen=True):
    """`cost` is in dollars, None if a price is unknown."""

    tokens: int
    cost: float | None


def limit_reached(
    what: str, spent: Spending, request: int, price: float | None, most_tokens: int, most_cost: float
) -> str:
    """Returns why a limit forbids the next request, or "". `what` is `turn` or `session`, `request` is in
    tokens, `price` is that of a token. 0 means no limit.
    """
    if most_tokens and spent.tokens + request > most_tokens:
        used = f"{spent.tokens:,} tokens used, {request:,} in the next request"
        return f"The next request would exceed limits.{what}_tokens ({most_tokens:,}): {used}"
    if most_cost and spent.cost is not None:
        more = (price or 0.0) * request
        if spent.cost >= most_cost or spent.cost + more > most_cost:
            used = f"${spent.cost:.4f} spent, about ${more:.4f} for the next request"
            return f"The next request would exceed limits.{what}_cost (${most_cost:g}): {used}"
    return ""


_QUERY = "<user_query>\n"
_EDITOR = re.compile(r"<additional_data>\n.*\n</additional_data>", re.DOTALL)
_PATHS = re.compile(r"<file_contents path=(\"[^\"\n]*\"|'[^'\n]*')")
_END = r"(?=\n\n(?:## (?!#)|Since your last message:|\{\"type\"|<)|\Z)"
_TABLE = re.compile(rf"\A## KNOWN FILES\n.*?{_END}\n*", re.DOTALL)
_BUNDLE = re.compile(rf"(## AUTO-BUNDLED FILES\n)(.*?){_END}", re.DOTALL)
_BUNDLED = re.compile(r"^### .* \(\d+ bytes, \d+ lines, md5 [0-9a-f]+\)$", re.MULTILINE)
_LISTINGS = re.compile(rf"(## DIRECTORY LISTING RESULTS\n)(.*?){_END}", re.DOTALL)
_LISTED = re.compile(r"^### .*$", re.MULTILINE)
_FOUND = re.compile(rf"(## SEARCH RESULTS\n[^\n]*\n).*?{_END}", re.DOTALL)
_NOT_SHOWN = "(no longer shown)"
_GONE = ("content", "fileId", "md5", "lines", "shown", "part", "outline")
_CONTENTS = ("content", "edits", "diff")


def emptied(message: Message, keep: Collection[str] = (), *, answered: bool = True) -> Message:
    """Removes file contents; proposed changes to paths in `keep` are preserved. Removes the table of known
    files, because a later message repeats it. `answered`: the turn is over, so listings and search
    results are removed too.
    """
    match message["role"]:
        case "user" | "tool":
            text = str(message.get("content") or "")
            at = text.rfind(_QUERY)
            ours, words = (text[:at].rstrip("\n"), text[at:]) if at >= 0 else (text, "")
            ours = _TABLE.sub("", ours)
            if answered:
                ours = _LISTINGS.sub(lambda found: found[1] + "\n".join(_LISTED.findall(found[2])), ours)
                ours = _FOUND.sub(rf"\1{_NOT_SHOWN}", ours)
            ours = _BUNDLE.sub(lambda found: found[1] + "\n".join(_BUNDLED.findall(found[2])), ours)
            ours = _EDITOR.sub(_editor, ours)
            lines = [
                _slim(line, "files", _GONE) if line.startswith('{"type": "read_files"') else line
                for line in ours.split("\n")
            ]
            text = "\n\n".join(part for part in ("\n".join(lines), words) if part)
            return message | {"content": text or _NOT_SHOWN}
        case "assistant":
            # a changed part loses its native data; the others keep theirs
            origin = {"origin": message["origin"]} if "origin" in message else {}
            return message_of([_slim_part(part, keep) for part in parts_of(message)]) | origin
    return message


def _editor(found: re.Match[str]) -> str:
    paths = "\n".join(f'<file_contents path={path} truncated="true"/>' for path in _PATHS.findall(found[0]))
    return f"<additional_data>\n{paths}\n</additional_data>"


def _slim_part(part: Part, keep: Collection[str]) -> Part:
    match part:
        case TextPart(text) if (slim := _slim(text, "fileChanges", _CONTENTS, keep)) != text:
            return TextPart(slim)
        case CallPart(id, "propose_changes", arguments) if (
            slim := _slim(arguments, "changes", _CONTENTS, keep)
        ) != arguments:
            return CallPart(id, part.name, slim, part.native)
    return part


def _slim(text: str, key: str, gone: Collection[str], keep: Collection[str] = ()) -> str:
    try:
        value = json.loads(text)
        files = value[key]
        for place, file in enumerate(files):
            if file.get("path") not in keep and any(name in file for name in gone):
                rest = {name: part for name, part in file.items() if name not in gone}
                files[place] = rest | {"truncated": True}
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return text

"""Rows of the plan: actions with their attempts, matches and the open question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from tui_agent.answers.plans import DirectoryAction
from tui_agent.planning.chain import OTHER_CASE, Attempt
from tui_agent.store.state import ActionSlice, ListedFolder, PlanSlice
from tui_agent.ui.safe_text import counted
from tui_agent.ui.widgets.line_view import ACTIONS, ATTEMPTS, UNTRIED, Line, Piece
from tui_agent.ui.widgets.rows import Row

#: File lists longer than this are folded.
_SHOWN = 5
_OTHERS_SHOWN = 3
#: Answers to a question about a secret.
_CHOICES = {"mask": "the file with masked secrets", "send": "the complete file"}
_INDENT = Piece("  ")
_DEEPER = Piece("    ")


def plan_rows(plan: PlanSlice, waiting_for: str, unfolded: Collection[int]) -> list[Row]:
    """Keys: `action:I`, `file:I:PATH`, `left:I:PATH`, `choice:I:PATH`, `let_go:I`, `all:I`, `more:I`,
    `other:I:PATH`."""
    rows = []
    for index, action in enumerate(plan.actions):
        rows += _action(index, action, action.action.name == waiting_for, index in unfolded)
    rows += [_listed(folder) for folder in plan.listed]
    rows += [_directory(directory) for directory in plan.directories]
    rows += [Row("", Line((Piece(f"! {fault}", "warning"),)), wraps=True, hang=2) for fault in plan.faults]
    return rows


def _action(index: int, action: ActionSlice, asking: bool, unfolded: bool) -> Iterator[Row]:
    yield _head(index, action)
    marked = action.action.by == "model"  # the built-in planner generates all its patterns itself
    yield from (_attempt(attempt, marked) for attempt in action.earlier)
    tried = {attempt.step: attempt for attempt in action.attempts}
    count: Counter[str] = Counter()
    for author, pattern in action.action.steps:
        count[author] += 1
        step = (author, count[author])
        yield _attempt(tried[step], marked) if step in tried else _untried(pattern)
    yield from _files(index, action, unfolded)
    yield from _others(index, action, unfolded)
    yield from _end(action)
    if asking:
        yield from _question(index, action)


def _head(index: int, action: ActionSlice) -> Row:
    tried = [attempt for attempt in action.attempts if attempt.by == action.action.by]
    rank = f"{max((attempt.index for attempt in tried), default=0)}/{len(action.action.patterns)}"
    files = f"{len(action.loaded)} files" if len(action.loaded) > 1 else ""
    reason = action.action.reason
    right = [
        part
        for part in (f"{reason} · {rank}" if reason else "", f"{files} · {rank}" if files else "")
        if part
    ]
    name = Piece(action.action.name, "strong", "end")
    rights = tuple(Piece(text, "muted") for text in (*right, rank))
    return Row(f"action:{index}", Line((ACTIONS[action.state], Piece(" "), name), rights))


def _attempt(attempt: Attempt, marked: bool) -> Row:
    mark = ATTEMPTS[attempt.outcome]
    ink = "" if attempt.outcome in ("hit", "looking") else "muted"
    pattern = Piece(attempt.pattern, ink, "start")
    words = _outcome(attempt)
    if attempt.by == "program" and marked:
        words = (*(f"built in · {text}" for text in words), words[-1])
    rights = tuple(Piece(text, "muted") for text in words)
    return Row("", Line((_INDENT, mark, Piece(" "), pattern), rights))


def _untried(pattern: str) -> Row:
    return Row("", Line((_INDENT, UNTRIED, Piece(" "), Piece(pattern, "faint", "start"))))


def _outcome(attempt: Attempt) -> tuple[str, ...]:
    time = duration(attempt.ms)
    match attempt.outcome:
        case "looking":
            return ("looking …",)
        case "hit":
            matches = f"{attempt.matches} matches · " if attempt.matches > 1 else ""
            matches += "other case · " if attempt.why == OTHER_CASE else ""
            lines = f"{counted(attempt.lines, 'line')} · " if attempt.lines else ""
            return f"{matches}{lines}{time}", f"{matches}{time}", time
        case "miss":
            return f"no match · {time}", time
        case "too_broad":
            return (
                f"{attempt.matches} files match; narrow it · {time}",
                f"{attempt.matches} matches",
                f"{attempt.matches}",
            )
        case "timeout":
            return f"timed out · {time}", time
        case "invalid":
            return (*([attempt.why] if attempt.why else []), "not a pattern", "invalid")


def _files(index: int, action: ActionSlice, unfolded: bool) -> Iterator[Row]:
    listed = [(f"file:{index}:{path}", path, "", "") for path in action.loaded]
    if listed == [(f"file:{index}:{pattern}", pattern, "", "") for pattern in _hits(action)]:
        listed = []
    listed += [(f"left:{index}:{path}", path, "muted", "left out") for path in action.left_out]
    shown = len(listed) if unfolded or len(listed) <= _SHOWN + 1 else _SHOWN
    for key, path, ink, words in listed[:shown]:
        rights = (Piece(words, "muted"),) if words else ()
        yield Row(key, Line((Piece("  – " if words else "  → ", "muted"), Piece(path, ink, "start")), rights))
    if shown < len(listed):
        yield Row(f"more:{index}", Line((_DEEPER, Piece(f"… {len(listed) - shown} more", "muted"))))


def _others(index: int, action: ActionSlice, unfolded: bool) -> Iterator[Row]:
    others = [path for path in action.others if path not in action.loaded]
    for path in others if unfolded else others[:_OTHERS_SHOWN]:
        yield Row(
            f"other:{index}:{path}",
            Line((Piece("  · ", "faint"), Piece(path, "muted", "start")), (Piece("or this", "faint"),)),
        )


def _hits(action: ActionSlice) -> list[str]:
    return [attempt.pattern for attempt in action.attempts if attempt.outcome == "hit"]


def _end(action: ActionSlice) -> Iterator[Row]:
    broad = next((attempt for attempt in action.attempts if attempt.outcome == "too_broad"), None)
    none = f"{broad.matches} files match; narrow the pattern" if broad else "not found"
    words, ink = {
        "skipped": (f"{none}; skipped" if broad else "not found; skipped", "muted"),
        "create": (none if broad else "not found; it may be created", "added"),
        "failed": (none, "failed"),
        "asking": (none, "warning"),
    }.get(action.state, ("", ""))
    if words and not (action.state == "asking" and (action.several or action.question)):
        yield Row("", Line((Piece(f"  {words}", ink),)), wraps=True, hang=2)


def _question(index: int, action: ActionSlice) -> Iterator[Row]:
    if action.question:
        yield from _about_secret(index, action)
        return
    words = "Several files have this name. Which one is meant?" if action.several else "Which file is meant?"
    yield Row("", Line((Piece(f"  {words}", "warning"),)), wraps=True, hang=2)
    for number, path in enumerate(action.nearest[:9], 1):
        yield Row(f"choice:{index}:{path}", Line((Piece(f"  {number} ", "accent"), Piece(path, "", "start"))))
    if action.several:
        yield Row(f"all:{index}", Line((Piece("  0 ", "accent"), Piece("all of them"))))
        return
    yield Row(f"let_go:{index}", Line((Piece("  0 ", "accent"), Piece("continue without it"))))


def _about_secret(index: int, action: ActionSlice) -> Iterator[Row]:
    yield Row("", Line((Piece(f"  {action.question}", "warning"),)), wraps=True, hang=2)
    for number, choice in enumerate(action.nearest, 1):
        words = _CHOICES.get(choice, choice)
        yield Row(f"choice:{index}:{choice}", Line((Piece(f"  {number} ", "accent"), Piece(words))))
    yield Row(f"let_go:{index}", Line((Piece("  0 ", "accent"), Piece("none"))))


def _directory(directory: DirectoryAction, outcome: str = "", *, failed: bool = False) -> Row:
    below = "and below" if directory.recursive else ""
    detail = " · ".join(part for part in (directory.filter, below, outcome) if part)
    path = Piece(directory.path.rstrip("/") + "/", "", "start")
    ink = "warning" if failed else "muted"
    return Row("", Line((Piece("▸ ", "muted"), path), (Piece(detail, ink),) if detail else ()))


def _listed(folder: ListedFolder) -> Row:
    count = "1 entry" if folder.entries == 1 else f"{folder.entries:,} entries"
    return _directory(folder.directory, folder.error or count, failed=bool(folder.error))


def duration(ms: float) -> str:
    if ms >= 1000:
        return f"{ms / 1000:.1f}s"
    return f"{ms:.0f}ms" if ms >= 1 else "<1ms"

"""The built-in planner: which files a request names, read from its own words and the index, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from tui_agent.answers.plans import DirectoryAction, FileAction, Plan
from tui_agent.planning import phrases, resolving
from tui_agent.planning.references import Masked, find_references
from tui_agent.planning.spelling import looks_like_identifier
from tui_agent.planning.wishes import (
    MOST_NAMESAKES,
    Wish,
    is_identifier,
    may_be_namesake,
    wish_for,
    wish_for_identifier,
)
from tui_agent.workspace.index import Index

MAX_ACTIONS: Final = 20
#: Names that are looked up in the index one by one, and words that might be a program's names.
MAX_NAMES: Final = 40
MAX_IDENTIFIERS: Final = 8
_HERE: Final = re.compile(
    r"\b(?:(?:this|the current|the open|my current) (?:file|buffer|module|script|document)|"
    r"the selection|this (?:function|class|method|line|selection))\b",
    re.IGNORECASE,
)
_MADE: Final = re.compile(
    r"\b(?:create|creates|add|adds|write|make|generate|new|introduce)\s+(?:\S+\s+){0,4}\Z", re.I
)
_VAGUE: Final = re.compile(
    r"\b(?:somewhere|wherever|anywhere|elsewhere|everywhere|whichever|related|relevant|other files|callers?|usages?|"
    r"references|where (?:it|they|this|that)|all places|the rest)\b",
    re.IGNORECASE,
)


class Words(Struct, frozen=True):
    """What the words of a request say. `certain`: they name every file it needs, so that no model need be asked."""

    plan: Plan
    certain: bool


def plan_from_words(request: str, index: Index, active: str = "") -> Plan:
    """The plan that a request's words make; see `read_words`."""
    return read_words(request, index, active).plan


def read_words(request: str, index: Index, active: str = "") -> Words:
    """Read a request. `active` is the path of the buffer in front, for "this file".

    Looks through the whole index a few times: a thread's work where that is large.
    """
    masked = Masked(request)
    wishes = [*_phrases(masked, index), *_here(request, active), *_named(masked, request, index)]
    wishes = _once(sorted(wishes, key=lambda wish: wish.at))
    files = tuple(wish.action for wish in wishes if isinstance(wish.action, FileAction))
    folders = tuple(wish.action for wish in wishes if isinstance(wish.action, DirectoryAction))
    plan = Plan("words", files[:MAX_ACTIONS], folders[:MAX_ACTIONS], _too_many(len(files)))
    certain = bool(wishes) and all(wish.sure for wish in wishes) and not _VAGUE.search(request)
    return Words(plan, certain and len(files) <= MAX_ACTIONS)


def _too_many(count: int) -> tuple[str, ...]:
    return (
        (f"{count} files are named; the first {MAX_ACTIONS} are looked for",) if count > MAX_ACTIONS else ()
    )


def _phrases(masked: Masked, index: Index) -> Iterator[Wish]:
    """Batches, tests of something, and folders to be listed."""

    def is_folder(name: str) -> bool:
        return "/" in name or bool(resolving.folder_called(name, index))

    batches, folders = phrases.find_many(masked, is_folder)
    for folder in folders:
        path = resolving.folder_called(folder.path, index)
        yield Wish(folder.at, DirectoryAction(path or folder.path, folder.recursive), bool(path))
    for batch in batches:
        patterns = resolving.chain_for_batch(batch.folder, batch.names, index)
        action = FileAction(_label(batch.text), patterns, "all of them are meant", all=True)
        yield Wish(batch.at, action, not batch.folder or index.has_folder(batch.folder))
    for tests in phrases.find_tests_for(masked):
        patterns = resolving.chain_for_tests(tests.name)
        if _is_name(tests.name) or resolving.fits_something(patterns, index, MOST_NAMESAKES):
            action = FileAction(f"tests for {tests.name}", patterns, "its tests", False, "create_new")
            yield Wish(tests.at, action, False)


def _is_name(word: str) -> bool:
    return "/" in word or "." in word or looks_like_identifier(word)


def _here(request: str, active: str) -> Iterator[Wish]:
    found = _HERE.search(request) if active else None
    if found:
        yield Wish(found.start(), FileAction(active, (active,), "the open file is meant"), True)


def _named(masked: Masked, request: str, index: Index) -> Iterator[Wish]:
    """What single names mean. Plain words count only where a file is called just so."""
    references = find_references(masked)
    words = {reference.text for reference in references if may_be_namesake(reference)}
    namesakes = index.named(words) if words else {}
    names = identifiers = 0
    for reference in references:
        names += reference.kind != "word"
        wish = None
        if reference.kind == "word" or names <= MAX_NAMES:
            wish = wish_for(reference, request, index, namesakes.get(reference.text, []))
        if wish is None and is_identifier(reference) and identifiers < MAX_IDENTIFIERS:
            identifiers += 1
            wish = wish_for_identifier(reference, index)
        if wish is not None:
            yield wish


def _once(wishes: Iterable[Wish]) -> list[Wish]:
    """Each file once: what another wish finds with its first pattern is not looked for again."""
    kept: list[Wish] = []
    taken: set[str] = set()
    for wish in wishes:
        action = wish.action
        keys = {action.path} if isinstance(action, DirectoryAction) else _keys(action)
        if not keys & taken:
            kept.append(wish)
            taken |= keys
    return kept


def _keys(action: FileAction) -> set[str]:
    """What makes two actions the same: the first pattern, or the name in any spelling."""
    if action.all:
        return {action.patterns[0]}
    return {action.patterns[0], re.sub(r"[_-]", "", action.name).lower()}


def _label(text: str) -> str:
    return text[:1].upper() + text[1:60]

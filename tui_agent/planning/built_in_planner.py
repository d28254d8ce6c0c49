"""The built-in planner: finds the files named in a request, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.plans import DirectoryAction, FallbackKind, FileAction, Plan
from tui_agent.planning.references import (
    ORDINARY,
    PRODUCTS,
    MaskedText,
    Reference,
    by_suffix,
    chain_for_batch,
    chain_for_identifier,
    chain_for_module,
    chain_for_path,
    chain_for_tests,
    find_many,
    find_references,
    find_tests_for,
    fits_something,
    folder_called,
    looks_like_identifier,
)
from tui_agent.workspace.index import Index
from tui_agent.workspace.syntax_trees import is_source_extension

MAX_ACTIONS: Final = 20
#: Index lookups for names and possible identifiers.
MAX_NAMES: Final = 40
MAX_IDENTIFIERS: Final = 8
_HERE: Final = re.compile(
    r"\b(?:(?:this|the current|the open|my current) (?:file|buffer|module|script|document)|"
    r"the selection|this (?:function|class|method|line|selection))\b",
    re.IGNORECASE,
)
_VAGUE: Final = re.compile(
    r"\b(?:somewhere|wherever|anywhere|elsewhere|everywhere|whichever|related|relevant|other files|callers?|usages?|"
    r"references|where (?:it|they|this|that)|all places|the rest)\b",
    re.IGNORECASE,
)


#: A word that names more files is ignored.
MOST_NAMESAKES: Final = 3
SHORTEST_WORD: Final = 3
_TARGET: Final = re.compile(
    r"\b(?:rename|renames|move|moves|copy|copies|extract|split)\b[^\n]{0,70}\b(?:to|into|as)\s+[\"'`@]?\Z",
    re.I,
)
_MADE: Final = re.compile(
    r"\b(?:create|creates|add|adds|write|make|generate|new|introduce)\s+(?:\S+\s+){0,4}\Z", re.I
)


class FoundAction(Struct, frozen=True):
    """`sure`: the name is in the index. `plain`: the name is also a common word, so it does not show that
    the plan is complete.
    """

    at: int
    action: FileAction | DirectoryAction
    sure: bool
    plain: bool = False


class RequestReading(Struct, frozen=True):
    """`certain`: all required files are named, so no model is needed."""

    plan: Plan
    certain: bool


def read_words(request: str, index: Index, active: str = "", typed: str | None = None) -> RequestReading:
    """Scans the index several times; call it on a thread if it is large.

    - active: the path of the active buffer, for "this file".
    - typed: the user's part of the request. Files named by the rest, a command or skill, count only if they exist.
    """
    found = _found(request, index, active)
    if typed is not None:
        there = [
            one for one in found if one.sure and not (isinstance(one.action, FileAction) and one.action.all)
        ]
        found = _once([*_found(typed, index, active), *there])
    files = tuple(one.action for one in found if isinstance(one.action, FileAction))
    folders = tuple(one.action for one in found if isinstance(one.action, DirectoryAction))
    faults: tuple[str, ...] = ()
    if len(files) > MAX_ACTIONS:
        faults = (f"{len(files)} files are named; the first {MAX_ACTIONS} are looked for",)
    plan = Plan("words", files[:MAX_ACTIONS], folders[:MAX_ACTIONS], faults)
    named = [one for one in found if not one.plain]
    certain = bool(named) and all(one.sure for one in named) and not _VAGUE.search(request)
    return RequestReading(plan, certain and len(files) <= MAX_ACTIONS)


def _found(request: str, index: Index, active: str) -> list[FoundAction]:
    masked = MaskedText(request)
    here = _HERE.search(request) if active else None
    action = FileAction(active, (active,), "the open file is meant")
    meant = [FoundAction(here.start(), action, True)] if here else []
    found = [*_phrases(masked, index), *meant]
    references = find_references(masked)
    # Plain words count only for files with exactly that name.
    words = {
        reference.text
        for reference in references
        if reference.kind in ("quoted", "mention")
        or (
            reference.kind == "word"
            and len(reference.text) >= SHORTEST_WORD
            and reference.text not in ORDINARY
        )
    }
    namesakes = index.named(words) if words else {}
    names = identifiers = 0
    for reference in references:
        names += reference.kind != "word"
        one = None
        if reference.kind == "word" or names <= MAX_NAMES:
            one = _action_for(reference, request, index, namesakes.get(reference.text, []))
        if one is None and reference.kind in ("word", "quoted") and identifiers < MAX_IDENTIFIERS:
            text = reference.text.strip().removesuffix("()")
            if re.fullmatch(r"[\w-]+", text) and looks_like_identifier(text):
                identifiers += 1
                patterns = chain_for_identifier(text)
                if fits_something(patterns, index, MOST_NAMESAKES):
                    one = _file(reference, text, patterns, "a file may be called after it", True, "skip")
        if one is not None:
            found.append(one)
    return _once(sorted(found, key=lambda one: one.at))


def _phrases(masked: MaskedText, index: Index) -> Iterator[FoundAction]:
    def is_folder(name: str) -> bool:
        return "/" in name or bool(folder_called(name, index))

    batches, folders = find_many(masked, is_folder)
    for folder in folders:
        path = folder_called(folder.path, index)
        yield FoundAction(folder.at, DirectoryAction(path or folder.path, folder.recursive), bool(path))
    for batch in batches:
        patterns = chain_for_batch(batch.folder, batch.names, index)
        label = batch.text[:1].upper() + batch.text[1:60]
        action = FileAction(label, patterns, "all of them are meant", all=True)
        yield FoundAction(batch.at, action, not batch.folder or index.has_folder(batch.folder))
    for tests in find_tests_for(masked):
        patterns = chain_for_tests(tests.name)
        is_name = "/" in tests.name or "." in tests.name or looks_like_identifier(tests.name)
        if is_name or fits_something(patterns, index, MOST_NAMESAKES):
            action = FileAction(f"tests for {tests.name}", patterns, "its tests", False, "create_new")
            yield FoundAction(tests.at, action, True)


def _once(found: Iterable[FoundAction]) -> list[FoundAction]:
    kept: list[FoundAction] = []
    taken: set[str] = set()
    for one in found:
        action = one.action
        if isinstance(action, DirectoryAction):
            keys = {action.path}
        else:
            keys = {action.patterns[0]}
            keys |= set() if action.all else {re.sub(r"[_-]", "", action.name).lower()}
        if not keys & taken:
            kept.append(one)
            taken |= keys
    return kept


def _action_for(reference: Reference, request: str, index: Index, namesakes: list[str]) -> FoundAction | None:
    text = reference.text
    match reference.kind:
        case "traceback":
            path = by_suffix(text, index)
            return _file(reference, path, (path,), "the traceback names it", True) if path else None
        case "glob":
            text = re.sub(r"^(?:\./)+", "", text)
            anywhere = f"**/{text}"
            if "/" in text:
                patterns = (text,) if text.startswith("**/") else (text, anywhere)
            else:
                patterns = (anywhere,)
            action = FileAction(text, patterns, "the pattern is written so", all=True)
            return FoundAction(reference.at, action, True)
        case "alias":
            parts = [part for part in text.split("/") if part]
            source = "src" if index.has_folder("src") else ""
            if "." in parts[-1]:
                alias = chain_for_path("/".join([source, *parts] if source else parts), index)
            else:
                alias = chain_for_module(parts, source)
            return _file(reference, text, alias, "the import names it", False)
        case "mention":
            return _mention(reference, request, index, namesakes)
        case "path":
            return _path(reference, request, index)
        case "name":
            return _file_name(reference, request, index)
        case "module":
            return _module(reference, index)
        case "quoted":
            return _quoted(reference, request, index, namesakes)
        case "word":
            return _word(reference, namesakes)


def _file(
    reference: Reference,
    name: str,
    patterns: tuple[str, ...],
    reason: str,
    sure: bool,
    fallback: FallbackKind = "ask_user",
) -> FoundAction:
    action = FileAction(name, patterns, reason, fallback == "ask_user", fallback)
    return FoundAction(reference.at, action, sure)


def _mention(reference: Reference, request: str, index: Index, namesakes: list[str]) -> FoundAction | None:
    """Always wanted, unless it is a decorator or a user name."""
    text = re.sub(r"^(?:\./)+", "", reference.text).rstrip("/")
    if index.has_folder(text):
        return FoundAction(reference.at, DirectoryAction(text), True)
    if index.contains(text):
        return _file(reference, text, (text,), "mentioned", True)
    if "." in text.rpartition("/")[2] or ("/" in text and not re.fullmatch(r"[a-z0-9-]+/[a-z0-9._-]+", text)):
        return _file(
            reference,
            text,
            chain_for_path(text, index),
            "mentioned",
            False,
            _fallback(reference, request),
        )
    if 0 < len(namesakes) <= MOST_NAMESAKES:
        return _file(reference, text, tuple(namesakes), "mentioned", len(namesakes) == 1)
    return None


def _path(reference: Reference, request: str, index: Index) -> FoundAction | None:
    text = re.sub(r"^(?:\.{1,2}/)+", "", reference.text.replace("\\", "/"))
    if text.startswith(("/", "~")):
        found = by_suffix(text, index)
        return _file(reference, found, (found,), "the request names it", True) if found else None
    bare = re.sub(r"/+", "/", text).rstrip("/")
    if index.contains(bare):
        return _file(reference, bare, (bare,), "the request names it", True)
    if index.has_folder(bare):
        return FoundAction(reference.at, DirectoryAction(bare), True)
    if re.search(r"[^/.]\.[A-Za-z]\w{0,7}$", bare):
        patterns = chain_for_path(bare, index)
        return _file(
            reference,
            bare,
            patterns,
            "the request names it",
            _is_target(reference, request),
            _fallback(reference, request),
        )
    if text.endswith("/") and folder_called(bare, index):
        return FoundAction(reference.at, DirectoryAction(folder_called(bare, index)), False)
    first = bare.partition("/")[0]
    if index.has_folder(first) or reference.text.startswith("."):
        patterns = chain_for_module(bare.split("/"))
        if fits_something(patterns, index, MOST_NAMESAKES):
            return _file(reference, bare, patterns, "the request names it", False)
    return None


def _fallback(reference: Reference, request: str) -> FallbackKind:
    made = _MADE.search(request[: reference.at][-80:]) or _is_target(reference, request)
    return "create_new" if made else "ask_user"


def _is_target(reference: Reference, request: str) -> bool:
    return _TARGET.search(request[: reference.at][-80:]) is not None


def _file_name(reference: Reference, request: str, index: Index) -> FoundAction | None:
    """Requires a known extension or an entry in the index; excludes product and method names."""
    text = reference.text
    if fits_something([f"**/{text}"], index, MOST_NAMESAKES):
        patterns = chain_for_path(text, index)
        return _file(reference, text, patterns, "the request names it", True)
    if not is_source_extension(text.rpartition(".")[2]) or text.lower() in PRODUCTS:
        return _module(reference, index)
    patterns = chain_for_path(text, index)
    return _file(
        reference,
        text,
        patterns,
        "the request names it",
        _is_target(reference, request),
        _fallback(reference, request),
    )


def _module(reference: Reference, index: Index) -> FoundAction | None:
    parts = re.split(r"\.|::", reference.text)
    patterns = chain_for_module(parts)
    if not fits_something(patterns, index, MOST_NAMESAKES):
        return None
    return _file(reference, reference.text, patterns, "the module is named", True)


def _quoted(reference: Reference, request: str, index: Index, namesakes: list[str]) -> FoundAction | None:
    text = reference.text.strip()
    inner = MaskedText(text)
    found = [Reference(other.kind, other.text, reference.at) for other in find_references(inner)]
    if len(found) == 1 and found[0].kind not in ("word", "quoted") and " " not in text:
        return _action_for(found[0], request, index, namesakes)
    if index.contains(text):
        return _file(reference, text, (text,), "the request names it", True)
    if re.fullmatch(r"[^/\n]{1,100}\.\w{1,8}", text) and is_source_extension(text.rpartition(".")[2]):
        return _file(reference, text, chain_for_path(text, index), "the request names it", False)
    return _word(reference, namesakes, quoted=True)


def _word(reference: Reference, namesakes: list[str], *, quoted: bool = False) -> FoundAction | None:
    text = reference.text
    if text in ORDINARY and not quoted:
        return None
    own = {path: path.rpartition("/")[2] for path in namesakes}
    same = [path for path, name in own.items() if text in (name, name.rpartition(".")[0])]
    if not 0 < len(same) <= MOST_NAMESAKES:
        return None
    named = quoted or looks_like_identifier(text)
    one = _file(reference, text, tuple(same), "a file is called so", named, "skip")
    return replace(one, plain=not named)

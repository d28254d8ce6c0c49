"""Permission of calls: by the user's rules, by earlier approvals, or by asking.

A rule is a tool, or `tool(pattern)` for its paths, patterns or commands; `*` in a tool's name stands for
any letters (`server__*`). Precedence: `deny`, `ask`, `allow`, the tool's default. An approval covers
exactly the displayed call in this workspace.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

import msgspec

from tui_agent.files.operating_system import read_start
from tui_agent.files.private import write_private
from tui_agent.settings.schema import PermissionSettings
from tui_agent.store import events as e
from tui_agent.store.conversation import PermissionAnswer, PermissionDecision
from tui_agent.tools.call_hooks import BeforeCall
from tui_agent.tools.tool import CallContext, Emit, Invocation, Tool, ToolContext, ToolResult, Verdict

OFFERED: tuple[PermissionAnswer, ...] = ("once", "session", "always", "no")
STORE = "permissions.json"
MOST_KEPT = 2_000
#: Maximum characters of a command. Linux limits an argument of a program to 128 KiB.
MOST_COMMAND = 100_000
_ASK = "the mode is ask, in which nothing is changed and no command runs"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELL = re.compile(r"[;&|<>$`\n()]")
_RULE = re.compile(r"(?P<tool>[\w*-]+)(?:\((?P<pattern>.*)\))?\Z", re.DOTALL)


async def permitted(
    context: ToolContext, tool: Tool, call: Invocation, emit: Emit, hooked: BeforeCall | None = None
) -> ToolResult | None:
    """Returns None if permitted, otherwise a result with the reason. Hooks can refuse, ask, and allow where
    no rule decides.
    """
    hooked = hooked or BeforeCall()
    if why := hooked.refused or (_ASK if context.core.mode == "ask" and (tool.acts or tool.proposes) else ""):
        await emit(e.NoticeGiven("info", f"{tool.name} was refused: {why}"))
        if not call.is_wire:
            await emit(e.ModelOwesNews(f"Your {tool.name} was refused: {why}."))
        return _refusal(why)
    found = await tool.circumstances(call, context) if tool.circumstances is not None else CallContext()
    verdict, rule = verdict_of(context, tool, call, found)
    if hooked.verdict == "ask" and verdict == "allow":
        verdict = "ask"
    elif hooked.verdict == "allow" and verdict == "ask" and not rule:
        verdict = "allow"
    if verdict == "allow":
        return None
    preview, digest = tool.preview(call), digest_of(context, tool, call, found)
    if found.words:
        preview = f"{preview}\n\n{found.words}"
    decision = PermissionDecision(digest, tool.name, tool.shown(call), preview[:MOST_KEPT], acts=tool.acts)
    if verdict == "deny":
        return await _denied(decision, "rule", f"the rule {rule} denies it", emit)
    if digest in approved(context, found) and hooked.verdict != "ask":
        return None
    if context.ask is None:
        return await _denied(decision, "nobody", "confirmation is not possible here", emit)
    if context.calls.hooks is not None:
        answered = await context.calls.hooks.asked(call.name, call.entries)
        if answered.refused:
            return await _denied(decision, "hook", answered.refused, emit)
        if answered.verdict == "allow" and not rule:
            return None
    async with context.progress.asking:
        await emit(e.PermissionAsked(call.id, tool.name, tool.shown(call), preview, digest))
        answer = await context.answer(call.id, OFFERED)
    reason = " ".join(answer.patterns)
    chosen: PermissionAnswer = next((one for one in OFFERED if one == answer.path), "no")
    await emit(e.PermissionDecided(msgspec.structs.replace(decision, answer=chosen, reason=reason)))
    if chosen == "no":
        return _refusal(f"the person did not allow it{f': {reason}' if reason else ''}")
    if chosen == "always" and found.remembered == "exactly":
        try:
            store_approval(context.core.folders.config, digest)
        except OSError as error:
            why = (
                f"The approval is valid for this session only, because it cannot be saved ({error.strerror})"
            )
            await emit(e.NoticeGiven("warning", why))
    return None


async def _denied(
    decision: PermissionDecision, by: Literal["rule", "hook", "nobody"], why: str, emit: Emit
) -> ToolResult:
    await emit(e.PermissionDecided(msgspec.structs.replace(decision, answer="no", by=by, reason=why)))
    about = f" ({decision.shown})" if decision.shown else ""
    await emit(e.NoticeGiven("warning", f"{decision.tool}{about} was not done: {why}"))
    return _refusal(why)


def _refusal(why: str) -> ToolResult:
    return ToolResult(f"Error: not done: {why}.", ok=False, amount="denied", denied=True)


def verdict_of(context: ToolContext, tool: Tool, call: Invocation, found: CallContext) -> tuple[Verdict, str]:
    """The rule is "" for the tool's default."""
    rules, targets = context.core.settings.permissions, tool.targets(call)
    if not all(_covers(one, tool, targets) for one in context.only):
        return "deny", "`tools` of the sub-task's agent"
    if tool.exact and any(len(command) > MOST_COMMAND for command in targets):
        return "deny", f"that a command has at most {MOST_COMMAND:,} characters"
    forms = _as_words(targets) if tool.exact and (rules.deny or rules.ask) else targets
    for verdict, written in (("deny", rules.deny), ("ask", rules.ask)):
        for rule in written:
            if _fits(rule, tool.name, forms):
                return cast(Verdict, verdict), rule
    for rule in rules.allow if found.remembered == "exactly" else ():
        if _fits(rule, tool.name, targets, every=True, exact=tool.exact):
            return "allow", rule
    return found.verdict or tool.verdict(call, context), ""


def has_tool(only: Sequence[Mapping[str, tuple[str, ...]]], name: str) -> bool:
    if name in ("describe_tool", "call_tool"):
        return all(any("__" in one for one in tools) for tools in only)
    return all(any(fnmatch.fnmatchcase(name, one) for one in tools) for tools in only)


def _covers(tools: Mapping[str, tuple[str, ...]], tool: Tool, targets: tuple[str, ...]) -> bool:
    """A pattern covers simple commands only."""
    if tool.name in ("describe_tool", "call_tool"):
        return True
    patterns = [tools[one] for one in tools if fnmatch.fnmatchcase(tool.name, one)]
    if not patterns or () in patterns:
        return bool(patterns)
    if tool.exact and any(_SHELL.search(target) for target in targets):
        return False
    allowed = [one for some in patterns for one in some]
    return all(any(fnmatch.fnmatchcase(target.strip(), one) for one in allowed) for target in targets)


def refusal_of_path(rules: PermissionSettings, tool: str, path: str) -> str:
    """`ask` rules apply only to calls that name the file: asking about every search hit would be excessive."""
    for verdict, written in (("denies", rules.deny), ("asks about", rules.ask)):
        for rule in written:
            match = _RULE.match(rule)
            if match and match["pattern"] is not None and _fits(rule, tool, (path,)):
                return f"the rule {rule} {verdict} it"
    return ""


def _as_words(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Adds each simple command without quotes, assignments and program path: shell syntax can hide it."""
    found = list(commands)
    for command in commands:
        found.append(command.strip())
        lexer = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=";&|()")
        lexer.whitespace_split, lexer.commenters = True, ""
        words: list[str] = []
        try:
            for word in [*lexer, ";"]:
                if word and not set(word) - set(";&|()"):
                    found += _forms(words)
                    words = []
                elif words or not _ASSIGNMENT.match(word):
                    words.append(word)
        except ValueError:
            found += _forms(words)
    return tuple(found)


def _forms(words: list[str]) -> list[str]:
    return [" ".join(words), " ".join([words[0].rpartition("/")[2], *words[1:]])] if words else []


def _fits(
    rule: str, tool: str, targets: tuple[str, ...], *, every: bool = False, exact: bool = False
) -> bool:
    """Whether the pattern matches, or with `exact` equals, one target, or with `every` all of them."""
    match = _RULE.match(rule)
    if match is None or not fnmatch.fnmatchcase(tool, match["tool"]):
        return False
    pattern = match["pattern"]
    if pattern is None:
        return True
    if exact:
        return bool(targets) and all(target == pattern for target in targets)
    fitting = [fnmatch.fnmatchcase(target.removeprefix("./"), pattern) for target in targets]
    return bool(fitting) and (all(fitting) if every else any(fitting))


def digest_of(context: ToolContext, tool: Tool, call: Invocation, found: CallContext) -> str:
    effect = "" if found.remembered == "session" else (tool.approves or tool.preview)(call)
    exactly = "\0".join([str(context.core.workspace.root), tool.name, effect, *filter(None, [found.covers])])
    return hashlib.sha256(exactly.encode(errors="surrogatepass")).hexdigest()


def approved(context: ToolContext, found: CallContext) -> set[str]:
    if found.remembered == "never":
        return set()
    enough = ("once", "session", "always") if found.remembered == "session" else ("session", "always")
    lasting = {one.digest for one in context.core.state.permissions if one.answer in enough}
    return lasting | stored_approvals(context.core.folders.config)


def stored_approvals(folder: Path) -> set[str]:
    """Returns digests; none if unreadable."""
    try:
        return set(msgspec.json.decode(read_start(folder / STORE), type=list[str]))
    except (OSError, msgspec.DecodeError):
        return set()


def store_approval(folder: Path, digest: str) -> None:
    _keep(folder, {*stored_approvals(folder), digest})


def forget_approval(folder: Path, digest: str) -> None:
    kept = stored_approvals(folder)
    if digest in kept:
        _keep(folder, kept - {digest})


def _keep(folder: Path, digests: Iterable[str]) -> None:
    write_private(folder / STORE, msgspec.json.encode(sorted(digests)))

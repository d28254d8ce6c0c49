"""Hooks of a session: read when the first is due, and run at events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tui_agent.edits.change import Change, FileStep, diff_of, text_under, unified
from tui_agent.errors import EditFailed, SessionError, TuiAgentError
from tui_agent.log.core import Core, call
from tui_agent.processes.background import start_task
from tui_agent.settings.schema import HookEvent
from tui_agent.store import events as e
from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.extensions.hooks import Hook, HookResult
    from tui_agent.session.hook_transcript import HookTranscript
    from tui_agent.tools.call_hooks import BeforeCall, CallHooks, HookedCall

AT_ONCE = 4
#: Consecutive turns that `Stop` hooks may add.
MAX_FOLLOWING = 10
#: Seconds for all `SessionEnd` hooks.
ENDS_WITHIN = 5.0
MAX_NOTICES = 5
#: Maximum bytes of a file compared around a hook, and characters of a diff and of a result in its input.
MAX_COMPARED, MAX_DIFF, MAX_RESULT = 20_000_000, 100_000, 20_000
#: Events at which there is nothing to block: the reason is a notice.
_CANNOT_BLOCK = ("SessionStart", "SessionEnd", "SubagentStart", "Notification", "PostCompact", "StopFailure")
#: The other agent's names of our modes, and of turn failures.
_MODES = {"ask": "plan", "edit": "default", "auto": "acceptEdits"}
_FAILURES = {
    "RateLimited": "rate_limit",
    "BadKey": "authentication_failed",
    "RequestRejected": "invalid_request",
    "ContextTooLong": "invalid_request",
    "Unreachable": "server_error",
    "ModelError": "server_error",
}
EndReason = Literal["clear", "resume", "prompt_input_exit", "other"]


class Answers:
    def __init__(self, found: Sequence[tuple[Hook, HookResult]] = ()) -> None:
        self.found = found

    @property
    def blocked(self) -> str:
        return next(
            (f"the hook {hook.name} blocked it: {it.blocked}" for hook, it in self.found if it.blocked), ""
        )

    @property
    def reasons(self) -> str:
        return "\n".join(f"The hook {hook.name} says: {it.blocked}" for hook, it in self.found if it.blocked)

    @property
    def context(self) -> str:
        return "\n".join(f"From the hook {hook.name}:\n{it.context}" for hook, it in self.found if it.context)

    @property
    def verdict(self) -> Literal["", "allow", "ask"]:
        """`ask` wins over `allow`, which hooks of a workspace cannot give."""
        verdicts = {
            it.verdict for hook, it in self.found if it.verdict != "allow" or hook.origin != "project"
        }
        return "ask" if "ask" in verdicts else "allow" if "allow" in verdicts else ""

    def raise_for_stop(self) -> None:
        """Raises `SessionError` if a hook ends the turn."""
        for hook, it in self.found:
            if it.stop:
                raise SessionError(f"The hook {hook.name} ended the turn ({it.stop})", "/hooks shows it")


class Hooks:
    """A sub-task's session uses its parent's, with its own folder."""

    def __init__(self, core: Core, *, part: bool = False) -> None:
        self._core, self._part = core, part
        self._parent: Hooks | None = None
        self._agent = "general-purpose"
        #: `clear` if this session replaced another on the screen.
        self.source: Literal["startup", "clear"] = "startup"
        self._trigger = "auto"
        self._loading: asyncio.Task[None] | None = None
        self._beginning: asyncio.Task[str] | None = None
        #: Tasks beside the turn, and those whose hooks have `background`.
        self._beside: set[asyncio.Task[Any]] = set()
        self._in_background: set[asyncio.Task[Any]] = set()
        self._running: set[asyncio.Task[HookResult]] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._following = 0
        #: Whether the model has the text of the `SessionStart` hooks.
        self._given = False
        self._possible: bool | None = None
        self._told: set[str] = set()
        self._hooks: tuple[Hook, ...] = ()
        #: Sentences about entries that are left out.
        self.problems: tuple[str, ...] = ()
        self._transcript: HookTranscript | None = None
        self._writing = asyncio.Lock()
        core.journal.store.subscribe(self._on_event)

    @property
    def state(self) -> State:
        return self._core.state

    @property
    def root(self) -> Path:
        return self._parent.root if self._parent else self._core.workspace.root

    @property
    def all(self) -> tuple[Hook, ...]:
        return self._parent.all if self._parent else self._hooks

    @property
    def calls(self) -> CallHooks | None:
        if not self._may_have_any():
            return None
        from tui_agent.tools.call_hooks import CallHooks

        return CallHooks(self._before_call, self._asked, self._after_call, self._compacting)

    @call(changes=False)
    def share(self, parent: Hooks, agent: str = "") -> None:
        self._parent, self._agent = parent, agent or self._agent

    @call(changes=False)
    async def read(self) -> None:
        if self._parent is not None:
            await self._parent.read()
        elif self._may_have_any():
            if self._loading is None:
                self._loading = asyncio.create_task(self._load(), name="hooks")
            await asyncio.shield(self._loading)

    @call(changes=False)
    async def again(self) -> None:
        self._loading = self._possible = None
        await self.read()

    @call(changes=False)
    def start(self) -> None:
        if self._beginning is None and not self._part and self._may_have_any():
            source = "resume" if self.state.next_turn > 1 else self.source
            self._beginning = asyncio.create_task(self._begin(source), name="hooks: session")

    @call(changes=False)
    async def stop(self) -> None:
        for task in self._running:
            task.cancel()

    @call(changes=False)
    async def settled(self, *, background: bool = True) -> None:
        """Waits for hooks beside the turn, such as those after an apply."""
        while running := self._beside | self._in_background if background else self._beside:
            await asyncio.wait(running)

    @call(changes=False)
    async def close(self, reason: EndReason = "other") -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDS_WITHIN):
                if self._beginning is not None:
                    await self._run("SessionEnd", {"reason": reason}, reason)
                await self.settled(background=False)
        beside = *self._beside, *self._in_background, *self._running
        tasks = [one for one in (self._loading, self._beginning, *beside) if one]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @call(changes=False)
    async def submitted(self, text: str, unasked: bool = False) -> str:
        """Raises `SessionError` if a hook blocks the message."""
        if not self._may_have_any():
            return ""
        if self._part:
            begun, self._given = self._given, True
            return "" if begun else (await self._run("SubagentStart", {}, self._agent)).context
        self.start()
        assert self._beginning is not None
        begun = await asyncio.shield(self._beginning)
        begun, self._given = "" if self._given else begun, True
        if unasked:
            return begun
        answers = await self._run("UserPromptSubmit", {"prompt": text})
        if answers.blocked:
            raise SessionError(f"The message was not sent, {answers.blocked}", "write it in another way")
        answers.raise_for_stop()
        return "\n\n".join(filter(None, (begun, answers.context)))

    @call(changes=False)
    async def proposed(self) -> bool:
        turn = self.state.turn.number
        changes = [change for change in self.state.review.open if change.turn == turn]
        if self._part or not changes or not self._may_have_any():
            return False
        answers = await self._run("ChangesProposed", await self._described(changes))
        await self._core.journal.record(*_news(answers))
        if blocked := answers.blocked:
            words = f"The changes wait for you in every mode, since {blocked}"
            await self._core.journal.record(e.NoticeGiven("warning", words, in_chat=True))
        return bool(blocked)

    @call(changes=False)
    async def before_apply(self, changes: Sequence[Change]) -> None:
        """Raises `SessionError` if a hook blocks it, and `EditFailed` if a hook changed a file of the
        changes.
        """
        if self._part:
            return
        await self.read()
        if not any(hook.settings.event == "BeforeApply" and not hook.off for hook in self.all):
            return
        paths = [path for change in changes for path in (change.path, change.rename_to) if path]
        before = await asyncio.to_thread(self._digests, paths)
        answers = await self._run("BeforeApply", await self._described(changes))
        if answers.blocked:
            raise SessionError(f"Nothing was applied, {answers.blocked}", "correct the changes, or skip them")
        answers.raise_for_stop()
        after = await asyncio.to_thread(self._digests, paths)
        if stale := [path for path in dict.fromkeys(paths) if before[path] != after[path]]:
            raise EditFailed(
                f"Nothing was applied, {', '.join(stale)} changed while a hook ran",
                "look at the changes as they are now, then apply them",
            )

    @call(changes=False)
    async def turn_ended(self) -> str:
        if not self._may_have_any():
            return ""
        event: HookEvent = "SubagentStop" if self._part else "Stop"
        from tui_agent.session.hook_transcript import last_reply

        fields = {"stop_hook_active": self._following > 0, "last_assistant_message": last_reply(self.state)}
        if self._part:
            fields["agent_transcript_path"] = await self._transcribed()
        answers = await self._run(event, fields, *([self._agent] if self._part else []))
        if not answers.blocked or any(it.stop for _, it in answers.found):
            self._following = 0
            return ""
        self._following += 1
        if self._following > MAX_FOLLOWING:
            self._following = 0
            words = f"The turn ended although {answers.blocked}: {MAX_FOLLOWING} turns in a row were added"
            await self._core.journal.record(e.NoticeGiven("warning", words, in_chat=True))
            return ""
        return answers.reasons

    async def _before_call(self, call_id: str, tool: str, entries: tuple[Any, ...]) -> BeforeCall:
        from tui_agent.tools.call_hooks import BeforeCall, with_input

        hooked, answers = await self._for_calls("PreToolUse", tool, entries, {"tool_use_id": call_id})
        verdict, before = answers.verdict, entries or ({},)
        changed = list(before)
        for at, (one, found) in enumerate(hooked):
            for hook, it in found.found:
                if it.updated is None or it.updated == one.input or answers.blocked:
                    continue
                try:
                    changed[at] = with_input(tool, changed[at], one.input, it.updated)
                    said = f"The hook {hook.name} changed the input of {one.name}"
                except ValueError as error:
                    verdict = "ask"
                    said = f"The changed input of the hook {hook.name} is not used for {one.name}: {error}"
                await self._core.journal.record(e.NoticeGiven("info", said))
        entries_now = tuple(changed) if tuple(changed) != before else None
        return BeforeCall(answers.blocked, verdict, entries_now, answers.context)

    async def _asked(self, tool: str, entries: tuple[Any, ...]) -> BeforeCall:
        """Ignores input that a hook changed."""
        from tui_agent.tools.call_hooks import BeforeCall

        more = {"permission_suggestions": []}
        hooked, answers = await self._for_calls("PermissionRequest", tool, entries, more)
        changes = [
            hook.name
            for one, found in hooked
            for hook, it in found.found
            if it.updated is not None and it.updated != one.input
        ]
        allowed = all(found.verdict == "allow" for _, found in hooked) and not changes
        for name in changes:
            said = f"The hook {name} changed the input while you were about to be asked, which is not used"
            await self._core.journal.record(e.NoticeGiven("info", said))
        return BeforeCall(answers.blocked, "allow" if allowed else "")

    async def _after_call(
        self, call_id: str, tool: str, entries: tuple[Any, ...], text: str, ok: bool
    ) -> str:
        if tool == "propose_changes" and ok:
            return ""
        more: dict[str, Any] = {"tool_use_id": call_id}
        if ok:
            more["tool_response"] = {"success": True, "content": text[:MAX_RESULT]}
        else:
            more |= {"error": text[:MAX_RESULT], "is_interrupt": False}
        if ok and tool == "run_command":
            more["tool_response"] |= {"stdout": text[:MAX_RESULT], "stderr": "", "interrupted": False}
        event: HookEvent = "PostToolUse" if ok else "PostToolUseFailure"
        _, answers = await self._for_calls(event, tool, entries, more)
        return "\n".join(filter(None, (answers.reasons, answers.context)))

    async def _for_calls(
        self, event: HookEvent, tool: str, entries: tuple[Any, ...], more: dict[str, Any]
    ) -> tuple[list[tuple[HookedCall, Answers]], Answers]:
        """Returns the answers by call, and all. Raises `SessionError` if a hook ends the turn."""
        from tui_agent.tools.call_hooks import hooked_calls

        root = self._core.workspace.root
        found = list(hooked_calls(tool, entries, root))
        running = [
            self._run(
                event,
                {"tool_name": one.name, "tool_input": one.input, **more},
                *one.names,
                covers=partial(one.is_covered, root),
            )
            for one in found
        ]
        hooked = list(zip(found, await asyncio.gather(*running), strict=True))
        answers = Answers([pair for _, one in hooked for pair in one.found])
        answers.raise_for_stop()
        return hooked, answers

    async def _compacting(self, trigger: Literal["auto", "manual"]) -> str:
        self._trigger = trigger
        answers = await self._run("PreCompact", {"trigger": trigger, "custom_instructions": ""}, trigger)
        return answers.blocked

    def _on_event(self, event: e.Event, state: State) -> None:
        # Hook settings are loaded only for these events, to keep them off the start.
        match event:
            case e.PermissionAsked() | e.QuestionAsked():
                pass
            case e.CheckpointMade() | e.ConversationBegun(why="condensed") if not self._part:
                pass
            case e.TurnEnded(ok=False, stopped=False) if not self._part:
                pass
            case _:
                return
        if self._may_have_any():
            start_task(self._beside, self._react(event, state), "hooks: beside")

    async def _react(self, event: e.Event, state: State) -> None:
        match event:
            case e.CheckpointMade(checkpoint=point):
                from tui_agent.tools.call_hooks import HookedCall

                root = self._core.workspace.root
                files = [str(root / step.path) for step in point.files]
                results = [await self._run("Applied", {"checkpoint": point.id, "files": files})]
                for step in point.files:
                    if step.after:
                        path = str(root / step.path)
                        texts = await asyncio.to_thread(self._texts_of, step)
                        written = {"file_path": path, **texts}
                        call = HookedCall("Edit" if step.before else "Write", written, "propose_changes")
                        fields = {"tool_name": call.name, "tool_input": written, "tool_use_id": point.id}
                        fields["tool_response"] = {"filePath": path, "success": True}
                        covers = partial(call.is_covered, root)
                        results.append(await self._run("PostToolUse", fields, *call.names, covers=covers))
                await self._core.journal.record(*(news for answers in results for news in _news(answers)))
            case e.ConversationBegun():
                from tui_agent.model.parts import text_of

                # A summary has replaced older messages: the model needs the start texts again.
                stored = [one.blob for one in state.conversation.messages if one.kind == "summary"]
                found = await asyncio.to_thread(
                    lambda: [text_under(self._core.blobs, blob) or "{}" for blob in stored]
                )
                words = "\n".join(text_of(msgspec.json.decode(one)) for one in found)
                trigger, self._trigger = self._trigger, "auto"
                fields = {"trigger": trigger, "compact_summary": words[:MAX_DIFF]}
                await self._run("PostCompact", fields, trigger)
                if context := await self._begin("compact"):
                    await self._core.journal.record(e.ModelOwesNews(context))
            case e.TurnEnded(kind=failure, error=error, limit=limit):
                from tui_agent.session.hook_transcript import last_reply

                kind = "max_output_tokens" if limit else _FAILURES.get(failure, "unknown")
                fields = {"error": kind, "error_details": error, "last_assistant_message": last_reply(state)}
                await self._run("StopFailure", fields, kind)
            case e.PermissionAsked(tool=tool, shown=shown):
                kind = "permission_prompt" if tool else "elicitation_dialog"
                await self._notified(f"tui-agent asks about {tool} {shown}".strip(), kind)
            case e.QuestionAsked(action=action, question=question):
                words = question or f"tui-agent asks which file is meant: {action}"
                await self._notified(words, "question")

    def _may_have_any(self) -> bool:
        if self._parent is not None:
            return self._parent._may_have_any()
        from tui_agent.extensions.hooks import may_have_any

        if self._possible is None:
            self._possible = may_have_any(self._core.settings.hooks, self._core.workspace.root)
        return self._possible

    async def _begin(self, source: str) -> str:
        fields = {"source": source, "model": self.state.model.name}
        return (await self._run("SessionStart", fields, source)).context

    async def _notified(self, message: str, kind: str) -> None:
        fields = {"message": message, "title": "tui-agent", "notification_type": kind}
        await self._run("Notification", fields, kind)

    async def _run(
        self,
        event: HookEvent,
        fields: dict[str, Any],
        *names: str,
        covers: Callable[[str], bool] = lambda rule: True,
    ) -> Answers:
        """Compares matchers with the event's `names`; `covers` decides about rules."""
        await self.read()
        hooks = [
            hook
            for hook in self.all
            if hook.settings.event == event
            and not hook.off
            and hook.fits(*names)
            and (not hook.settings.rule or covers(hook.settings.rule))
        ]
        if not hooks:
            return Answers()
        whole = self._parent or self
        common = {
            "session_id": whole.state.session.id,
            "transcript_path": await whole._transcribed(),
            "cwd": str(self._core.workspace.root),
            "permission_mode": _MODES[self._core.mode],
            "hook_event_name": event,
        }
        if self._part:
            common |= {"agent_id": self.state.session.id, "agent_type": self._agent}
        for hook in hooks:
            if hook.settings.background:
                work = self._run_in_background(hook, {**common, **fields})
                start_task(self._in_background, work, "hooks: beside")
        hooks = [hook for hook in hooks if not hook.settings.background]
        if not hooks:
            return Answers()
        tasks = [asyncio.create_task(self._one(hook, {**common, **fields})) for hook in hooks]
        self._running.update(tasks)
        try:
            with self._core.journal.waits.on(f"waiting for the hook {hooks[0].name}"):
                await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
            self._running.difference_update(tasks)
        found = [
            (hook, task.result()) for hook, task in zip(hooks, tasks, strict=True) if not task.cancelled()
        ]
        await self._show(found)
        if any(task.cancelled() for task in tasks) and event == "BeforeApply":
            raise SessionError("Nothing was applied, a hook was stopped before it ended", "apply again")
        return Answers(found)

    async def _run_in_background(self, hook: Hook, fields: dict[str, Any]) -> None:
        found = [(hook, await self._one(hook, fields))]
        await self._show(found)
        await self._core.journal.record(*_news(Answers(found)))

    async def _transcribed(self) -> str:
        """Returns "" if writing fails."""
        from tui_agent.session.hook_transcript import HookTranscript

        if self._transcript is None:
            folder = self._core.storage.folder
            self._transcript = HookTranscript(folder, self._core.workspace.root)
        if self._core.storage.log is None:
            return ""
        async with self._writing:
            try:
                await asyncio.to_thread(self._transcript.write, self.state)
            except OSError:
                return ""
        return str(self._transcript.path)

    async def _one(self, hook: Hook, fields: dict[str, Any]) -> HookResult:
        from tui_agent.extensions.hooks import HookResult, run_hook

        async with self._slots:
            if hook.origin != "user" and not await asyncio.to_thread(self._is_same, hook):
                return HookResult(failed="has changed since you switched it on, and did not run")
            return await run_hook(hook, fields, self._core.workspace.root, self.root)

    def _is_same(self, hook: Hook) -> bool:
        from tui_agent.extensions.hooks import HOME, STORE
        from tui_agent.extensions.trusted import Switches

        place = HOME if hook.origin == "home" else str(self.root)
        switched_on = Switches(self._core.folders, STORE).of(place).get(hook.name)
        return switched_on == hook.fingerprint(self.root)

    async def _show(self, found: Iterable[tuple[Hook, HookResult]]) -> None:
        for hook, it in found:
            failed = f"The hook {hook.name} {it.failed}" if it.failed else ""
            if failed and failed not in self._told:
                self._told.add(failed)
                await self._core.journal.record(e.NoticeGiven("warning", failed))
            if it.message:
                await self._core.journal.record(e.NoticeGiven("info", f"{hook.name}: {it.message}"))
            if it.blocked and hook.settings.event in _CANNOT_BLOCK:
                await self._core.journal.record(e.NoticeGiven("warning", f"{hook.name}: {it.blocked}"))

    async def _load(self) -> None:
        from tui_agent.extensions.hooks import configured

        core = self._core
        root = core.workspace.root
        found = await asyncio.to_thread(configured, core.settings.hooks, root, core.folders)
        self._hooks, self.problems = found.hooks, found.problems
        off = [hook.name for hook in found.hooks if hook.origin == "project" and hook.off]
        said = list(found.problems[:MAX_NOTICES])
        if off:
            names = ", ".join(off[:MAX_NOTICES])
            said.append(f"Hooks of this workspace are off ({names}): /hooks switches them on")
        await core.journal.record(*(e.NoticeGiven("warning", sentence) for sentence in said))

    def _texts_of(self, step: FileStep) -> dict[str, str]:
        """Returns {} for files that are not text. Blocking."""
        try:
            before, after = (text_under(self._core.blobs, one) or "" for one in (step.before, step.after))
        except TuiAgentError:
            return {}
        if step.before:
            return {"old_string": before[:MAX_DIFF], "new_string": after[:MAX_DIFF]}
        return {"content": after[:MAX_DIFF]}

    def _digests(self, paths: Sequence[str]) -> dict[str, str]:
        from tui_agent.extensions.files import digest_of

        root = self._core.workspace.root
        return {path: digest_of(root / path, Path("/"), MAX_COMPARED) for path in paths}

    async def _described(self, changes: Sequence[Change]) -> dict[str, Any]:
        blobs, root = self._core.blobs, self._core.workspace.root

        def described(change: Change) -> dict[str, Any]:
            base, new = text_under(blobs, change.base), text_under(blobs, change.new)
            return {
                "id": change.id,
                "kind": change.kind,
                "file_path": str(root / change.path),
                "rename_to": str(root / change.rename_to) if change.rename_to else "",
                "diff": unified(diff_of(change.path, base or "", new or ""))[:MAX_DIFF],
            }

        return {"changes": await asyncio.to_thread(lambda: [described(change) for change in changes])}


def _news(answers: Answers) -> list[e.Lasting]:
    return [e.ModelOwesNews(text) for text in (answers.reasons, answers.context) if text]

"""Questions as lists: permissions, workspace trust, undo storage and others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.app import App

from tui_agent.edits.change import Change
from tui_agent.errors import AnswerNeeded, PasteTooLong, TuiAgentError
from tui_agent.extensions import trusted
from tui_agent.extensions.markdown_files import described
from tui_agent.files.git_folder import Entries
from tui_agent.log.cleanup import CleanupResult, clean, readable, used
from tui_agent.mcp_servers.servers import programs_of
from tui_agent.settings import trust
from tui_agent.store.state import PermissionDecision, PermissionQuestion
from tui_agent.ui.dialogs.chooser import MOST, Chooser, ChooserRow, question
from tui_agent.ui.dialogs.dialog import TextDialog
from tui_agent.ui.host import Choice, Host
from tui_agent.ui.safe_text import label, parts

if TYPE_CHECKING:
    from tui_agent.session.session import Session

ANSWERS = {
    "once": "Allow this once",
    "session": "Allow exactly this for the rest of this session",
    "always": "Allow exactly this in this workspace, always",
    "no": "Do not allow it",
}
GO_ON_ANSWERS = {"once": "Continue: do not ask again in this turn", "no": "Stop: keep the partial answer"}
_ALL = "all"


async def answer_permission(app: Host, session: Session) -> None:
    """Shows a call's exact effect. Typed text is the reason for the model, stored until the answer."""
    question = session.state.asked
    if question is None:
        await session.notice("There is no permission question.", "info")
        return
    place = f"answer:{question.call}"
    typed = session.state.input.typed.get(place, "")
    choose = app.keys.shown("chooser.choose")

    def rows(words: str) -> list[ChooserRow]:
        nonlocal typed
        typed = words
        session.chat.set_typed(place, words)
        return question_rows(question, words, choose)

    while True:
        title = f"{question.tool} {question.shown}".strip() + ": allow?"
        hint = "{choose} allows it once; or type a reason to deny it"
        yes = ""
        if question.answers:
            title, hint = (
                question.words,
                "type the answer; {choose} selects" if question.typed else "{choose} selects",
            )
        elif not question.tool:  # needs no reason, so a single key can answer
            title, hint, yes = question.words, "{yes} continues, {choose} selects", "once"
        chosen = await app.push_screen_wait(Chooser(title, rows, hint, yes=yes, text=typed))
        if chosen == _ALL:
            await app.push_screen_wait(TextDialog("Exact action", question.preview, keep=""))
        elif chosen is None:
            return
        elif chosen:
            break
    try:
        told = typed.strip() if chosen == "no" or question.typed else ""
        await session.chat.permit(question.call, chosen, told)
    except TuiAgentError as error:
        await session.notice(str(error), "warning")
    session.chat.set_typed(place, "")


def question_rows(question: PermissionQuestion, typed: str, choose: str) -> list[ChooserRow]:
    """Text other than `y` or `yes` denies with a reason."""
    reason = typed.strip()
    words = ANSWERS
    if question.answers:
        words = dict(question.answers)
        if question.typed and reason:
            first = next(iter(words))
            words[first] = f"{words[first]}: {reason}"
    elif not question.tool:
        words = GO_ON_ANSWERS
    elif reason and reason.lower() not in ("y", "yes"):
        words = {"no": f"{ANSWERS['no']}: {reason}"}
    rows = [ChooserRow(answer, label(text)) for answer, text in words.items()]
    lines = question.preview.splitlines()
    shown = lines[: MOST - len(rows) - 1]
    rows += [ChooserRow(_ALL, parts(("  ", ""), (line, "$muted"))) for line in shown]
    if len(shown) < len(lines):
        more = f"  … {len(lines) - len(shown):,} more lines: {choose} shows all"
        rows.append(ChooserRow(_ALL, label(more)))
    return rows


async def show_permissions(app: Host, session: Session) -> None:
    choose = app.keys.shown("chooser.choose")
    while session.state.permissions:
        decisions = {one.digest: one for one in reversed(session.state.permissions)}
        chosen = await app.push_screen_wait(
            Chooser(
                f"Permissions: {choose} revokes",
                lambda words, found=decisions: [
                    ChooserRow(digest, label(text))
                    for digest, one in found.items()
                    if words.lower() in (text := decision_words(one)).lower()
                ],
            )
        )
        if not chosen:
            return
        await session.chat.revoke(chosen)
    await session.notice("There are no permissions.", "info")


def decision_words(decision: PermissionDecision) -> str:
    """Returns words such as `allowed always · search_text “x”`, `denied by a rule · …`."""
    by = {"rule": " by a rule", "hook": " by a hook", "nobody": ": a confirmation was not possible"}.get(
        decision.by, ""
    )
    said = f"denied{by}" if decision.answer == "no" else f"allowed {decision.answer}"
    return f"{said} · {decision.tool} {decision.shown}".strip()


async def may_run_here(app: App[object], session: Session, command: str) -> bool:
    """Asks unless the user always allows it."""
    if session.commands.may_run_here():
        return True
    answers = {
        "": "No",
        "once": "Run it once",
        "always": f"Always run it in {session.workspace.root.name}",
    }
    title = f"Run in the real folder, with lasting effect: {command}"
    asked = question(title, answers, to_type="{yes} runs it once, {choose} selects", yes="once")
    chosen = await app.push_screen_wait(asked)
    if chosen == "always":
        try:
            await asyncio.to_thread(session.commands.allow_here)
        except OSError as error:
            await session.notice(f"The answer could not be saved ({error.strerror})", "warning")
    return bool(chosen)


async def run_asked(app: App[Any], run: Callable[..., Awaitable[object]]) -> bool:
    """Asks first if the command cannot be isolated as configured. Returns whether it ran."""
    try:
        await run()
    except AnswerNeeded as needed:
        yes = "Run it, and similar commands in this session" if needed.once else "Run it once"
        asked = question(
            f"Run {needed.command}",
            {"": "No", "yes": yes},
            below=needed.how,
            to_type="{yes} runs it, {choose} selects",
            yes="yes",
        )
        if not await app.push_screen_wait(asked):
            return False
        await run(allowed=True)
    return True


async def save_pastes(app: App[Any], session: Session, refused: PasteTooLong) -> dict[str, str]:
    """Returns the saved paths by placeholder line."""
    each = "it" if len(refused.lines) == 1 else "each"
    answers = {
        "": "Leave it in the prompt",
        "save": f"Save {each} as a file in the workspace, and mention it",
    }
    if not await app.push_screen_wait(question(refused.what, answers, below=refused.remedy)):
        return {}
    try:
        return {line: await session.chat.save_paste(line) for line in refused.lines}
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return {}


async def run_checks(app: App[object], session: Session) -> None:
    names = await asyncio.to_thread(session.checks.names)
    here = bool(names) and not session.state.review.open
    if here and not await may_run_here(app, session, f"the checks ({', '.join(names)})"):
        return
    await session.checks.again()


async def choose_hosts(app: App[Any], session: Session) -> None:
    while found := session.outside_agents.refused_hosts():
        answers = {
            f"{host} {name}": f"{host}   for {name}, asked {count} time{'' if count == 1 else 's'}"
            for name, host, count in found
        }
        below = "An agent can send any content to an allowed host. The permission is permanent."
        asked = question(
            "Hosts that agents asked for", answers, below=below, to_type="{choose} allows a host"
        )
        chosen = await app.push_screen_wait(asked)
        if not chosen:
            return
        host, _, name = chosen.partition(" ")
        try:
            await session.outside_agents.allow_host(host, name)
        except (TuiAgentError, OSError) as error:
            await session.notice(str(error), "error")
            return
        await session.notice(f"{name} can now connect to {host}")
    await session.notice("No host is refused to an agent of this session")


async def ask_for_trust(app: Host, session: Session) -> None:
    root, folders = session.workspace.root, session.folders
    found: list[ChooserRow] = []
    seen: list[trust.TrustedWorkspace] = []

    async def get() -> None:
        standing = await asyncio.to_thread(trusted.standing, root, folders)
        _, filters = await asyncio.to_thread(trust.trust_scope, root)
        entry = await asyncio.to_thread(trusted.brought, root, folders)
        if standing == "trusted" and entry.filters != await asyncio.to_thread(
            trust.trusted_filters, root, folders
        ):
            standing = "changed"
        programs = await asyncio.to_thread(programs_of, root)
        about = await asyncio.to_thread(described, root, folders)
        files = sorted([*entry.files, *entry.extensions], key=lambda name: name not in about)
        seen[:], found[:] = [entry], trust_rows(standing, filters, files, programs, about)

    choice = await app.push_screen_wait(Chooser("Trust this workspace?", lambda _: found, "", get()))
    if not choice:
        return
    if choice.startswith(_FILE):
        await session.files.open(choice.removeprefix(_FILE))
        return
    if choice == "trust":
        await asyncio.to_thread(trust.trust, root, folders, seen[0])
    else:
        await asyncio.to_thread(trust.revoke, root, folders)
    if app.reopen is None or session.state.session.not_kept:
        await session.notice("Takes effect at the next start.", "info")
    else:
        await app.switch(Choice(session.state.session.id))


def trust_rows(
    standing: trust.Standing,
    filters: Entries,
    files: Sequence[str],
    programs: Sequence[tuple[str, str]] = (),
    about: Mapping[str, str] | None = None,
) -> list[ChooserRow]:
    """First the choice that changes nothing. `about` has words about files of skills, commands and agents."""
    match standing:
        case "nothing to trust":
            return [ChooserRow("", label("It has no settings or filters of its own"))]
        case "trusted":
            answers = [
                ChooserRow("", label("Keep the trust")),
                ChooserRow("revoke", label("Revoke the trust")),
            ]
        case _:
            answers = [
                ChooserRow("", label("Do not trust it")),
                ChooserRow("trust", label("Trust exactly these files")),
            ]
    shown, half = [], _MOST_OF_NAME // 2
    for setting, value in filters:
        name = setting if len(setting) <= _MOST_OF_NAME else f"{setting[:half]}…{setting[-half:]}"
        shown.append(("filter", f"{name} = {value}"))
    commands = [ChooserRow("", label(f"  {kind:<6}  {text}")) for kind, text in (*shown, *programs)]
    room = MOST - len(answers) - len(commands) - 1
    if room < 0:
        return [
            answers[0],
            ChooserRow(
                "", label(f"It brings {len(commands):,} filters, hooks and servers: too many to be shown")
            ),
        ]
    rows = [
        ChooserRow(_FILE + name, label(f"  {(about or {}).get(name) or f'look at {name}'}"))
        for name in files[:room]
    ]
    more = [ChooserRow("", label(f"  and {len(files) - room:,} more files"))] if len(files) > room else []
    return [*answers, *commands, *rows, *more]


_FILE = "file:"
#: Maximum characters, to keep a filter's command visible.
_MOST_OF_NAME = 40


async def clean_up(app: App[object], session: Session) -> None:
    data, limit = session.folders.data, session.loaded.settings.undo.max_bytes
    size = 0

    async def get() -> None:
        nonlocal size
        size = await asyncio.to_thread(used, data)
        chooser.retitle(f"{readable(size)} of {readable(limit)} of undo data")

    chooser = Chooser("Space used for undo", lambda _: storage_rows(size, limit), "", get())
    choice = await app.push_screen_wait(chooser)
    if not choice:
        return
    target = limit if size > limit else 0
    done = await asyncio.to_thread(clean, data, target, young=choice == "young")
    await session.notice(cleanup_summary_text(done, limit), "warning" if done.why_not else "info")


def storage_rows(size: int, limit: int) -> Sequence[ChooserRow]:
    """Above the limit, only the excess is deleted."""
    down = f", oldest first, down to {readable(limit)}" if size > limit else ""
    return [
        ChooserRow("", label("Cancel")),
        ChooserRow("old", label(f"Delete data older than 30 days{down}")),
        ChooserRow("young", label(f"Delete newer data too{down}; these changes cannot be undone any more")),
    ]


def cleanup_summary_text(done: CleanupResult, limit: int) -> str:
    freed = f"{done.removed} texts deleted ({readable(done.before - done.after)})"
    said = [freed if done.removed else "Nothing was deleted"]
    if done.why_not:
        said.append(done.why_not)
    said.append(f"{readable(done.after)} of {readable(limit)} of undo data")
    return "; ".join(said)


async def return_conflict(app: App[object], session: Session, change: Change) -> None:
    """Offers the later sub-task first."""
    rival = session.state.review.change(change.rival)
    if change.state != "conflict" or rival is None:
        await session.notice(f"{change.path} is not a conflict of two sub-tasks")
        return
    tasks = {task: f"{task} repeats its part, based on the other" for task in (*change.tasks, *rival.tasks)}
    chosen = await app.push_screen_wait(question(f"Return the conflict in {change.path} to", tasks))
    if not chosen:
        return
    await session.subtasks.redo(change.id, chosen)

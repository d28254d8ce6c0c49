"""Actions by id (`pane.name`) for keys, palette, footer and mouse."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from textual.binding import Binding, BindingType

from tui_agent.ui.panes import PANES

if TYPE_CHECKING:
    from tui_agent.store.state import State

#: Contexts without a pane: keys of the application (over dialogs too) and of the workspace.
APP, ANYWHERE = "app", ""


class Action(NamedTuple):
    """`pane` is the context of its keys, `hint` its label in the footer."""

    id: str
    words: str
    pane: str = ANYWHERE
    hint: str = ""

    @property
    def name(self) -> str:
        return self.id.partition(".")[2]

    @property
    def call(self) -> str:
        return self.name if self.pane == APP else f"do('{self.id}')"


_ANYWHERE = [
    Action("app.palette", "Find an action", hint="palette"),
    Action("app.help", "Show all keys", hint="keys"),
    Action("app.leader", "First of two keys: show the second keys"),
    Action("app.theme", "Change the theme"),
    Action("app.plain", "Switch the plain screen on or off"),
    Action("app.vim", "Switch Vim keys on or off"),
    Action("app.suspend", "Return to the shell; `fg` continues"),
    Action("app.detach", "Detach: leave the terminal, the session continues"),
    Action("app.notices", "Messages"),
    Action("app.inbox", "Inbox: what waits for you, other sessions"),
    Action("app.close", "Close the dialog, or go to the chat"),
    Action("session.new", "Start a new session in this folder"),
    Action("session.open", "Open another session"),
    Action("session.fork", "Fork this session"),
    Action("session.compact", "Summarise older messages now"),
    Action("session.export", "Export this session to a Markdown file"),
    Action("session.summary", "Edit the summary of older messages"),
    Action("session.setup", "Set up: model, checks, theme, instructions"),
    Action("session.model", "Choose the model"),
    Action("session.mode", "Change the mode: ask, edit or auto"),
    Action("session.carry_out", "Carry out the plan of mode ask, in mode edit"),
    Action("session.login", "Log in to GitHub Copilot, ChatGPT or OpenRouter"),
    Action("session.agent", "Run another agent in a view, or return to it"),
    Action("session.allow_host", "Allow hosts that an agent asked for"),
    Action("session.effort", "Choose the effort: how much the model thinks"),
    Action("session.edit_earlier", "Edit an earlier message and send it in a fork"),
    Action("session.rewind", "Rewind files and conversation to before a message"),
    Action("session.rename", "Rename this session"),
    Action("session.context", "Show the context: tokens, instructions, files"),
    Action("session.sent", "Show the last requests"),
    Action("session.clean", "Space used for undo"),
    Action("session.trust", "Trust this workspace: its settings and filters"),
    Action("session.permission", "Answer a permission question"),
    Action("session.permissions", "Show and revoke permissions"),
    Action("session.init", "Let the model propose an AGENTS.md for this folder"),
    Action("session.config", "Show settings and their sources"),
    Action("session.status", "Show session, model, mode, tokens and cost"),
    Action("session.memory", "Show instruction files"),
    Action("session.skills", "Insert a skill into the prompt"),
    Action("session.agents", "Show agents: prompts and other programs"),
    Action("session.hooks", "Show hooks: commands that run at events"),
    Action("session.attempts", "Compare the attempts of /best side by side"),
    Action("session.mcp", "Show MCP servers and their tools"),
    Action("session.stats", "Statistics of this folder's sessions"),
    Action("session.doctor", "Check the installation: programs, keys, servers"),
    Action("turn.stop", "Stop the running turn"),
    Action("turn.run_ticked", "Run all ticked sub-tasks"),
    Action("changes.apply_all", "Apply all pending changes", hint="apply all"),
    Action("changes.apply_one", "Apply one change: the review's current one"),
    Action("changes.skip_one", "Skip one change: the review's current one"),
    Action("changes.undo", "Undo the last apply"),
    Action("changes.commit", "Commit, with a drafted message"),
    Action("changes.redo", "Redo the last undo"),
    Action("commands.again", "Run the last command again"),
    Action("commands.online", "Run the last command again with network access"),
    Action("commands.list", "Show commands and their output"),
    Action("commands.take", "Move the files of the last command to the review"),
    Action("commands.forget_builds", "Delete kept build files"),
    Action("commands.show_test_files", "Let commands read test files that look like secrets"),
    Action("commands.hide_test_files", "Hide test files that look like secrets from commands"),
    Action("commands.accept_place", "Add the container of this folder as a place"),
    Action("checks.run", "Run the checks"),
    Action("checks.accept", "Try and choose the checks of this folder"),
    Action("pane.next", "Go to the next pane"),
    Action("pane.previous", "Go to the previous pane"),
    Action("pane.zoom", "Zoom the pane in or out"),
    Action("pane.hide", "Hide the pane"),
    Action("pane.show_all", "Show all panes in their default size"),
    Action("pane.wider", "Make the pane wider"),
    Action("pane.narrower", "Make the pane narrower"),
    Action("pane.taller", "Make the pane taller"),
    Action("pane.shorter", "Make the pane shorter"),
    *(Action(f"pane.{pane.id}", f"Go to {pane.called or f'the {pane.id}'}") for pane in PANES.values()),
]

ACTIONS: dict[str, Action] = {
    action.id: action
    for action in [
        Action("app.quit", "Quit (press twice)", APP),
        Action("app.stop_everything", "Stop everything: turn, sub-tasks and commands", APP),
        *_ANYWHERE,
        *(
            Action(f"{pane.id}.{key.name}", key.words, pane.id, key.hint)
            for pane in PANES.values()
            for key in pane.keys
        ),
    ]
}


_SAID = {
    "chat.paste_picture": "paste",
    "session.open": "resume",
    "app.suspend": "shell",
    "turn.stop": "stop",
    "changes.apply_all": "apply",
    "commands.take": "take",
    "app.stop_everything": "stop-everything",
}
_KEYS_ONLY = {"app.leader", "app.palette", "app.close", "pane.next", "pane.previous"}
_FIRST = (
    *("session.model", "session.mode", "session.open", "session.new", "changes.apply_all", "changes.undo"),
    *(
        "changes.commit",
        "checks.run",
        "session.compact",
        "session.context",
        "session.permissions",
        "session.effort",
    ),
    *("session.fork", "session.rewind", "session.init", "session.status", "app.help", "app.theme"),
)
#: By name. Destructive commands are last because Enter selects the first match.
SLASH: dict[str, Action] = {
    _SAID.get(action.id, action.name.replace("_", "-")): action
    for action in sorted(
        ACTIONS.values(),
        key=lambda it: (it.pane == APP, _FIRST.index(it.id) if it.id in _FIRST else len(_FIRST)),
    )
    if (action.pane in (APP, ANYWHERE) and action.id not in _KEYS_ONLY)
    or action.id in ("chat.copy", "chat.reasoning", "chat.btw", "chat.goal", "chat.paste_picture")
}
#: Names that other agents use.
_ALSO = {"clear": "session.new", "cost": "session.context", "diff": "pane.review", "exit": "app.quit"}
SLASH |= {word: ACTIONS[action_id] for word, action_id in _ALSO.items()}
#: The command in the prompt by action, for actions without a key.
TYPED = {action.id: f"/{word}" for word, action in reversed(SLASH.items())}


def slash_commands(words: str) -> list[tuple[str, Action]]:
    """Exact matches, then prefixes, then matches in the name and in the description."""
    words = words.lower()
    begin = sorted(
        (one for one in SLASH.items() if one[0].startswith(words)), key=lambda one: one[0] != words
    )
    hold = [one for one in SLASH.items() if words in one[0] and one not in begin]
    said = [one for one in SLASH.items() if words in one[1].words.lower() and one not in (*begin, *hold)]
    return begin + hold + said


def actions_of(pane: str) -> list[Action]:
    return [action for action in ACTIONS.values() if action.pane == pane]


def bindings_of(pane: str) -> list[BindingType]:
    """Bindings without keys, which the keymap assigns. Those of `APP` precede the focused widget's."""
    return [
        Binding(action.id, action.call, action.words, show=False, id=action.id, priority=pane == APP)
        for action in actions_of(pane)
    ]


Reason = Callable[["State"], str]


def why_not(action_id: str, state: State) -> str:
    """Returns "" if the action is available."""
    pane = action_id.partition(".")[0]
    reason = _REASONS.get(action_id) or _REASONS.get(pane)
    return reason(state) if reason else ""


def _unless(condition: Callable[[State], object], why: str) -> Reason:
    return lambda state: "" if condition(state) else why


_pending = _unless(lambda state: state.review.open, "nothing is pending")
_usable = _unless(
    lambda state: (
        state.review.open or all(c.state not in ("failed", "conflict") for c in state.review.changes)
    ),
    "none can be applied",
)
_undecided = _unless(
    lambda state: any(change.waits or change.state == "failed" for change in state.review.changes),
    "nothing is pending",
)
_applied = _unless(lambda state: any(not p.undone for p in state.review.checkpoints), "nothing was applied")
_repository = _unless(lambda state: state.workspace.is_repository, "no git repository")
_undone = _unless(lambda state: any(p.undone for p in state.review.checkpoints), "nothing was undone")
_proposed = _unless(lambda state: state.review.changes, "no changes")
_conflict = _unless(lambda state: any(c.state == "conflict" for c in state.review.changes), "no conflict")
_decided = _unless(
    lambda state: any(
        change.state in ("applied", "skipped", "undone") or {"applied", "skipped"}.intersection(change.hunks)
        for change in state.review.changes
    ),
    "nothing is decided",
)
_file = _unless(lambda state: state.buffers.open, "no file is open")
_text = _unless(
    lambda state: not ((front := state.buffers.get(state.buffers.active)) and front.note), "not open as text"
)
_clash = _unless(
    lambda state: (front := state.buffers.get(state.buffers.active)) and front.clash, "no differences"
)
_command = _unless(lambda state: state.commands.results, "no command has run")
_todo = _unless(lambda state: state.todos, "no todos")
_task = _unless(lambda state: state.subtasks.tasks, "no sub-tasks")
_task_runs = _unless(lambda state: state.subtasks.running, "no sub-task runs")
_question = _unless(lambda state: state.turn.phase == "waiting", "no question is open")
_works = _unless(
    lambda state: state.turn.running or state.commands.running or state.subtasks.running, "nothing is running"
)
_ticked = _unless(
    lambda state: any(
        t.auto_execute and not t.wanted and t.state in ("pending", "ready") for t in state.subtasks.tasks
    ),
    "none is ticked",
)

_REASONS: dict[str, Reason] = {
    **dict.fromkeys(
        (
            *("changes.apply_all", "changes.apply_one"),
            *(f"review.apply{what}" for what in ("", "_file", "_all", "_todo")),
        ),
        lambda state: _usable(state) or _pending(state),
    ),
    **dict.fromkeys(
        ("changes.skip_one", *(f"review.skip{what}" for what in ("", "_file", "_all", "_todo"))), _undecided
    ),
    **dict.fromkeys(("changes.undo", "review.undo"), _applied),
    **dict.fromkeys(("changes.redo", "review.redo"), _undone),
    **dict.fromkeys(("review.take_back", "review.take_back_file", "review.take_back_todo"), _decided),
    **dict.fromkeys(("review.yours", "review.theirs", "review.both"), _conflict),
    "review.give_back": _unless(
        lambda state: any(c.state == "conflict" and c.rival for c in state.review.changes), "no such conflict"
    ),
    "review": _proposed,
    **dict.fromkeys(("changes.commit", "files.diff"), _repository),
    "review.diff": lambda state: _proposed(state) or _repository(state),
    "buffers.diff": lambda state: _file(state) or _repository(state),
    "turn.stop": _unless(lambda state: state.turn.running or state.commands.running, "nothing is running"),
    "app.stop_everything": _works,
    "app.notices": _unless(lambda state: state.notices.items, "no notices"),
    **dict.fromkeys(("turn.run_ticked", "subtasks.run_ticked"), _ticked),
    **dict.fromkeys(("commands.again", "commands.online", "chat.tell_output"), _command),
    "commands.list": lambda state: "" if state.commands.running else _command(state),
    "commands.take": _unless(
        lambda state: any(result.changed for result in state.commands.results), "nothing was written"
    ),
    "session.permission": _unless(lambda state: state.asked is not None, "no question is open"),
    "pane.show_all": _unless(
        lambda state: state.layout.hidden or state.layout.zoomed or state.layout.sizes, "all panes are shown"
    ),
    "pane.hide": _unless(lambda state: state.layout.focus != "chat", "the chat stays open"),
    "buffers": _file,
    **dict.fromkeys(
        ("buffers.save", "buffers.find", "buffers.replace"), lambda state: _file(state) or _text(state)
    ),
    "buffers.merge": _clash,
    "known": _unless(lambda state: state.known.files, "no known files"),
    "plan": _unless(lambda state: state.plan.actions, "no plan"),
    **dict.fromkeys(("plan.choose", "plan.let_go", "plan.other"), _question),
    "chat.unqueue": _unless(lambda state: state.input.queue, "nothing is queued"),
    "chat.copy": _unless(
        lambda state: any(message.kind == "agent" for message in state.chat.messages), "no answer yet"
    ),
    "todos": _todo,
    "todos.add": lambda state: "",
    "subtasks": _task,
    "subtasks.add": lambda state: "",
    **dict.fromkeys(("subtasks.stop", "subtasks.stop_all"), _task_runs),
}

"""The table of actions available through keys, the palette, the footer and the mouse.

An id is `pane.name`. Panes register the action ids they implement (`panes`); `config/keys*.toml` maps ids
to keys.
"""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding, BindingType

from tui_agent.ui.panes import PANES

#: Contexts other than panes: application keys (active over dialogs too) and keys active anywhere in the
#: workspace.
APP, ANYWHERE = "app", ""


class Action(NamedTuple):
    """`pane` is the context of its keys, `hint` its label in the footer.

    Actions with `writes` start text input and are refused in read-only sessions.
    """

    id: str
    words: str
    pane: str = ANYWHERE
    hint: str = ""
    writes: bool = False

    @property
    def name(self) -> str:
        return self.id.partition(".")[2]

    @property
    def call(self) -> str:
        """The action in Textual's syntax."""
        return self.name if self.pane == APP else f"do('{self.id}')"


_ANYWHERE = [
    Action("app.palette", "Find an action by its words", hint="palette"),
    Action("app.help", "Show the keys", hint="keys"),
    Action("app.leader", "First of two keys: show what can follow"),
    Action("app.theme", "Change the theme"),
    Action("app.plain", "Plain screen for screen readers, or back"),
    Action("app.vim", "Vim keys in the prompt and the editor, or back"),
    Action("app.suspend", "Give the terminal to the shell; `fg` returns"),
    Action("app.detach", "Detach: leave the terminal, the session continues"),
    Action("app.notices", "Messages"),
    Action("app.close", "Close what is on top, else go to the chat"),
    Action("session.new", "Begin a new session in this folder"),
    Action("session.open", "Open another session"),
    Action("session.fork", "Fork this session"),
    Action("session.compact", "Summarise older messages now, to make room", writes=True),
    Action("session.export", "Write this session to a Markdown file"),
    Action("session.summary", "Read and edit the summary of older messages", writes=True),
    Action("session.model", "Choose the model that answers", writes=True),
    Action("session.mode", "Change the mode: ask, edit or auto", writes=True),
    Action("session.carry_out", "Carry out the plan of mode ask, in mode edit", writes=True),
    Action("session.login", "Log in to GitHub Copilot, ChatGPT or OpenRouter", writes=True),
    Action("session.agent", "Run an agent of yours in a view, or go back to it", writes=True),
    Action("session.effort", "Choose how much the model thinks", writes=True),
    Action("session.edit_earlier", "Edit a message you sent, and send it again in a fork", writes=True),
    Action("session.rewind", "Take files and conversation back to before a message", writes=True),
    Action("session.rename", "Name this session", writes=True),
    Action("session.context", "Show what the model sees: tokens, instructions, files"),
    Action("session.sent", "Show what the model was sent"),
    Action("session.clean", "Space used for undo"),
    Action("session.trust", "Trust this workspace: its settings and filters"),
    Action("session.permission", "Answer a tool that asks for permission", writes=True),
    Action("session.permissions", "Permissions: show what was decided, and revoke it", writes=True),
    Action("session.init", "Have the model propose an AGENTS.md for this folder", writes=True),
    Action("session.config", "Settings in force, and where each comes from"),
    Action("session.status", "Status: session, model, mode, tokens and cost"),
    Action("session.memory", "Instruction files of the model; open one"),
    Action("session.skills", "Skills: put one into the prompt", writes=True),
    Action("session.agents", "Agents: prompts for sub-tasks, and programs of other makers", writes=True),
    Action("session.hooks", "Hooks: commands that run at events"),
    Action("session.mcp", "Servers of tools, and their tools"),
    Action("session.stats", "Figures of this folder's sessions"),
    Action("session.doctor", "Examine this machine: parts, keys, servers, problems"),
    Action("turn.stop", "Stop the running turn"),
    Action("turn.run_ticked", "Run all sub-tasks that are ticked"),
    Action("changes.apply_all", "Apply all pending changes", hint="apply all"),
    Action("changes.undo", "Undo the last apply"),
    Action("changes.commit", "Commit, with a message that the model drafts", writes=True),
    Action("changes.redo", "Redo the last undo"),
    Action("commands.again", "Run the last command again"),
    Action("commands.online", "Run the last command again with the real network"),
    Action("commands.list", "Show the commands that ran, and what came of them"),
    Action("commands.take", "Put what the last command wrote into the review"),
    Action("commands.forget_builds", "Throw away what builds keep for commands"),
    Action("commands.show_test_files", "Show commands the test files that look secret"),
    Action("commands.hide_test_files", "Hide from commands the test files that look secret"),
    Action("checks.run", "Run the checks: on what is proposed, or in the folder"),
    Action("checks.accept", "Checks of this folder: try and choose them", writes=True),
    Action("pane.next", "Go to the next pane"),
    Action("pane.previous", "Go to the previous pane"),
    Action("pane.zoom", "Zoom the pane, or back"),
    Action("pane.hide", "Hide the pane"),
    Action("pane.show_all", "Show all panes again, each in its usual size"),
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
            Action(f"{pane.id}.{key.name}", key.words, pane.id, key.hint, key.writes)
            for pane in PANES.values()
            for key in pane.keys
        ),
    ]
}


#: Command names that differ from the action name, and actions excluded from the commands.
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
#: Slash commands by name: global actions and some chat actions. Destructive commands are last because Enter
#: selects the first match.
SLASH: dict[str, Action] = {
    _SAID.get(action.id, action.name.replace("_", "-")): action
    for action in sorted(ACTIONS.values(), key=lambda action: action.pane == APP)
    if (action.pane in (APP, ANYWHERE) and action.id not in _KEYS_ONLY)
    or action.id in ("chat.copy", "chat.reasoning", "chat.btw", "chat.goal", "chat.paste_picture")
}
#: Additional words of other agents, by the action they start.
_ALSO = {"clear": "session.new", "cost": "session.context", "diff": "pane.review", "exit": "app.quit"}
SLASH |= {word: ACTIONS[action_id] for word, action_id in _ALSO.items()}


def slash_commands(words: str) -> list[tuple[str, Action]]:
    """Returns the command `words`, then those that start with it, then those whose name or description contains it."""
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
    """Returns the bindings of a pane, `APP` or `ANYWHERE`, each with its action's id.

    The keymap (`keys.keymap`) assigns the keys later; the placeholder id matches no key. `APP` bindings
    have priority over the focused widget.
    """
    return [
        Binding(action.id, action.call, action.words, show=False, id=action.id, priority=pane == APP)
        for action in actions_of(pane)
    ]

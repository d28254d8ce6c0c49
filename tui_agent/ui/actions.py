"""The table of actions: everything that a key, the palette, the footer or the mouse can make happen.

An id is `pane.name`. In a pane it calls `action_name` of that pane. Keys come from `config/keys*.toml` by id, the
footer, the key help and the palette from here.
"""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding, BindingType

#: Contexts that are not panes: keys of the application, also over a dialog, and keys of the workspace anywhere.
APP, ANYWHERE = "app", ""


class Action(NamedTuple):
    """One action. `pane` is where its keys count; `call` is what it calls there, `hint` its word in the footer."""

    id: str
    words: str
    pane: str
    call: str
    hint: str = ""


def _of(pane: str, *rows: tuple[str, str] | tuple[str, str, str]) -> list[Action]:
    """Actions of one pane: (name, words, hint)."""
    return [Action(f"{pane}.{name}", words, pane, name, *hint) for name, words, *hint in rows]


def _go(*panes: str) -> list[Action]:
    return [
        Action(f"pane.{pane}", f"Go to {_CALLED.get(pane, f'the {pane}')}", ANYWHERE, f"go('{pane}')")
        for pane in panes
    ]


#: What panes are called in words, where that is not their id.
_CALLED = {"buffers": "the editor", "known": "the known files", "subtasks": "the sub-tasks"}


#: The panes in the order in which the keys walk through them.
PANES = ("files", "plan", "known", "buffers", "review", "chat", "todos", "subtasks")

_ANYWHERE = [
    Action("app.palette", "Find an action by its words", ANYWHERE, "palette", "palette"),
    Action("app.help", "Show the keys", ANYWHERE, "help", "keys"),
    Action("app.leader", "First of two keys: show what can follow", ANYWHERE, "leader"),
    Action("app.theme", "Change the theme", ANYWHERE, "theme"),
    Action("app.suspend", "Suspend to the shell; `fg` comes back", ANYWHERE, "suspend"),
    Action("app.notices", "Show the notices again", ANYWHERE, "notices"),
    Action("app.close", "Close what is on top, else go to the chat", ANYWHERE, "close"),
    Action("session.open", "Open another session", ANYWHERE, "sessions"),
    Action("session.fork", "Go on with a copy of this session", ANYWHERE, "fork"),
    Action("session.summary", "Read and edit the summary of older messages", ANYWHERE, "summary"),
    Action("session.model", "Choose the model that answers", ANYWHERE, "model"),
    Action("session.rename", "Name this session", ANYWHERE, "rename"),
    Action(
        "session.context", "Show what the model has in view: tokens, instructions, files", ANYWHERE, "context"
    ),
    Action("session.sent", "Show what the model was sent", ANYWHERE, "sent"),
    Action("session.clean", "Make room: how much is kept for undo, and less of it", ANYWHERE, "clean"),
    Action(
        "session.trust",
        "Trust this workspace: look at the settings and filters that it brings",
        ANYWHERE,
        "trust",
    ),
    Action("turn.stop", "Stop the running turn", ANYWHERE, "stop"),
    Action(
        "turn.run_ticked",
        "Run all sub-tasks that are ticked",
        ANYWHERE,
        "to_pane('subtasks', 'run_ticked')",
    ),
    Action(
        "changes.apply_all",
        "Apply all pending changes",
        ANYWHERE,
        "to_pane('review', 'apply_all')",
        "apply all",
    ),
    Action("changes.undo", "Undo the last apply", ANYWHERE, "to_pane('review', 'undo')"),
    Action("changes.commit", "Commit, with a message that the model drafts", ANYWHERE, "commit"),
    Action("changes.redo", "Redo the last undo", ANYWHERE, "to_pane('review', 'redo')"),
    Action("pane.next", "Go to the next pane", ANYWHERE, "step(1)"),
    Action("pane.previous", "Go to the previous pane", ANYWHERE, "step(-1)"),
    Action("pane.zoom", "Zoom the pane, or back", ANYWHERE, "zoom"),
    Action("pane.hide", "Hide the pane", ANYWHERE, "hide"),
    Action("pane.show_all", "Show all panes again, each in its usual size", ANYWHERE, "show_all"),
    Action("pane.wider", "Make the pane wider", ANYWHERE, "resize('width', 1)"),
    Action("pane.narrower", "Make the pane narrower", ANYWHERE, "resize('width', -1)"),
    Action("pane.taller", "Make the pane taller", ANYWHERE, "resize('height', 1)"),
    Action("pane.shorter", "Make the pane shorter", ANYWHERE, "resize('height', -1)"),
    *_go(*PANES),
]

_PANES = [
    *_of(
        "files",
        ("open", "Open the file, or the folder", "open"),
        ("find", "Find a file by its name", "find"),
        ("mention", "Mention the file in the chat", "mention"),
        ("diff", "Compare the file with the last commit, or with any apply", "diff"),
        ("reveal", "Go to the file of the editor"),
    ),
    *_of(
        "plan",
        ("choose", "Answer with the chosen file", "choose"),
        ("let_go", "Let the file go", "let go"),
        ("retry", "Look for the file again", "retry"),
        ("edit", "Change the patterns", "patterns"),
        ("other", "Name another file", "other"),
        ("open", "Open the file that was found", "open"),
    ),
    *_of(
        "known",
        ("open", "Open the file", "open"),
        ("timeline", "Show the file's timeline at length, or the table", "timeline"),
    ),
    *_of(
        "buffers",
        ("save", "Save the file", "save"),
        ("find", "Find in the file", "find"),
        ("goto_line", "Go to a line"),
        ("next_tab", "Next open file"),
        ("previous_tab", "Previous open file"),
        ("close", "Close the file", "close"),
        ("discard", "Close the file and give up unsaved text"),
        ("reload", "Take the text from disk"),
        ("diff", "Compare the file with the last commit, or with any apply"),
        ("overwrite", "Save over what is on disk"),
    ),
    *_of(
        "review",
        ("apply", "Apply the hunk", "apply"),
        ("skip", "Skip the hunk", "skip"),
        ("apply_file", "Apply the whole file"),
        ("skip_file", "Skip the whole file"),
        ("apply_all", "Apply all pending changes", "all"),
        ("skip_all", "Skip all pending changes"),
        ("apply_todo", "Apply all changes of the same todo"),
        ("skip_todo", "Skip all changes of the same todo"),
        ("undo", "Undo the last apply", "undo"),
        ("redo", "Redo the last undo"),
        ("take_back", "Take the applied hunk back"),
        ("take_back_file", "Take the applied change to the file back"),
        ("take_back_todo", "Take back what was applied for the same todo"),
        ("history", "Undo or redo any apply"),
        ("edit", "Edit the hunk by hand", "edit"),
        ("open", "Open the file at the hunk"),
        ("diff", "Compare the file with the last commit, or with any apply"),
        ("yours", "Conflict: keep the file's lines"),
        ("theirs", "Conflict: take the proposed lines"),
        ("both", "Conflict: take both"),
        ("give_back", "Conflict of two sub-tasks: let one do its part again"),
        ("columns", "Show the diff side by side, or in one column"),
        ("next_hunk", "Next hunk", "hunk"),
        ("previous_hunk", "Previous hunk"),
        ("next_file", "Next changed file", "file"),
        ("previous_file", "Previous changed file"),
        ("comment", "Say something about the hunk to the model"),
    ),
    *_of(
        "chat",
        ("send", "Send the message", "send"),
        ("newline", "New line"),
        ("older", "Earlier message of yours"),
        ("newer", "Later message of yours"),
        ("page_up", "Scroll the chat up"),
        ("page_down", "Scroll the chat down"),
        ("bottom", "Go to the newest message"),
        ("go_on", "Go on, and first see and edit what the model is reminded of"),
        ("reasoning", "Show or fold the model's reasoning"),
        ("copy", "Copy the last answer"),
        ("unqueue", "Take the last waiting message back into the input"),
    ),
    *_of(
        "todos",
        ("toggle", "Tick the todo", "tick"),
        ("add", "Add a todo", "add"),
        ("edit", "Edit the todo", "edit"),
        ("remove", "Remove the todo", "remove"),
        ("move_up", "Move the todo up"),
        ("move_down", "Move the todo down"),
    ),
    *_of(
        "subtasks",
        ("next", "Next sub-task"),
        ("previous", "Previous sub-task"),
        ("run", "Run the sub-task", "run"),
        ("run_ticked", "Run all sub-tasks that are ticked", "run ticked"),
        ("tick", "Tick the sub-task for the batch", "tick"),
        ("chat", "Open the chat of the sub-task", "chat"),
        ("changes", "See the changes of the sub-task in the review", "changes"),
        ("skip", "Skip the sub-task", "skip"),
        ("retry", "Run the sub-task again", "retry"),
        ("stop", "Stop the sub-task", "stop"),
        ("stop_all", "Stop all sub-tasks"),
        ("add", "Add a sub-task"),
        ("edit", "Edit the goal and the files of the sub-task"),
        ("connect", "Choose what the sub-task waits for"),
        ("remove", "Take the sub-task out of the graph"),
        ("fold", "Hide the sub-tasks that are done, or show them"),
        ("filter", "Show only sub-tasks with certain words"),
        ("follow", "Keep the cursor on what runs, or let it stay"),
    ),
]

ACTIONS: dict[str, Action] = {
    action.id: action
    for action in [
        Action("app.quit", "Quit (press twice)", APP, "quit"),
        Action("app.stop_everything", "Stop everything: the turn and all sub-tasks", APP, "stop_everything"),
        *_ANYWHERE,
        *_PANES,
    ]
}


def actions_of(pane: str) -> list[Action]:
    return [action for action in ACTIONS.values() if action.pane == pane]


def bindings_of(pane: str) -> list[BindingType]:
    """The bindings of a pane (or of `APP`, `ANYWHERE`), each known by its action's id.

    Which keys they have is the keymap's business (`keys.keymap`); until it is set they answer to none: an id is
    not a key. A key of `APP` comes before whatever has the focus.
    """
    return [
        Binding(action.id, action.call, action.words, show=False, id=action.id, priority=pane == APP)
        for action in actions_of(pane)
    ]

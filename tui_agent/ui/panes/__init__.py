"""Registry of the panes: id, title, class, screen slots and key actions."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Slot(NamedTuple):
    """A screen region (positions: `layout.areas`) and the tab order in it."""

    name: str
    tab: int = 0


class Key(NamedTuple):
    """A key action of a pane. `hint` is its footer label; `writes` actions are refused in read-only
    sessions."""

    name: str
    words: str
    hint: str = ""
    writes: bool = False


class RegisteredPane(NamedTuple):
    """A pane. `source` is its module and class; `slots` are for wide, medium and narrow screens.

    Key bindings are in `config/keys.toml`, by pane id and action name.
    """

    id: str
    title: str
    source: str
    slots: tuple[Slot, Slot, Slot]
    keys: tuple[Key, ...]
    #: Name used in sentences if it differs from the id.
    called: str = ""

    def load(self) -> type[Any]:
        """Imports and returns the `Pane` subclass."""
        module, _, name = self.source.partition(":")
        return getattr(import_module(f"{__name__}.{module}"), name)


#: By id, in focus order.
PANES = {
    pane.id: pane
    for pane in (
        RegisteredPane(
            "files",
            "Files",
            "files:FilesPane",
            (Slot("left"), Slot("left", 2), Slot("all", 3)),
            (
                Key("open", "Open the file, or the folder", "open"),
                Key("find", "Find a file by its name", "find"),
                Key("mention", "Mention the file in the chat", "mention", writes=True),
                Key("diff", "Compare the file with the last commit or any apply", "diff"),
                Key("reveal", "Go to the file of the editor"),
            ),
        ),
        RegisteredPane(
            "plan",
            "Plan",
            "plan:PlanPane",
            (Slot("left-low"), Slot("right-low"), Slot("all", 4)),
            (
                Key("choose", "Answer with the chosen file", "choose"),
                Key("let_go", "Go on without the file", "leave out"),
                Key("retry", "Look for the file again", "retry"),
                Key("edit", "Change the patterns", "patterns", writes=True),
                Key("other", "Name another file", "other", writes=True),
                Key("open", "Open the file that was found", "open"),
            ),
        ),
        RegisteredPane(
            "known",
            "Known",
            "known_files:KnownPane",
            (Slot("left-low", 1), Slot("left", 3), Slot("all", 7)),
            (
                Key("open", "Open the file", "open"),
                Key("timeline", "Show the file's timeline at length, or the table", "timeline"),
            ),
            "the known files",
        ),
        RegisteredPane(
            "buffers",
            "Editor",
            "buffers:BuffersPane",
            (Slot("middle"), Slot("left"), Slot("all", 2)),
            (
                Key("save", "Save the file", "save"),
                Key("find", "Find in the file", "find"),
                Key("replace", "Replace in the file", "replace", writes=True),
                Key("replace_all", "Replace all that is found, after a preview", writes=True),
                Key("find_case", "Match case when finding, or not"),
                Key("find_regex", "Find an expression (regex), or words"),
                Key("find_selection", "Find in the selection only, or everywhere"),
                Key("goto_line", "Go to a line"),
                Key("symbol", "Go to a symbol: class, function or heading"),
                Key("bracket", "Go to the matching bracket"),
                Key("comment", "Comment the lines out, or in again"),
                Key("duplicate", "Duplicate the lines"),
                Key("line_up", "Move the lines up"),
                Key("line_down", "Move the lines down"),
                Key("wrap", "Wrap long lines, or not"),
                Key("next_tab", "Next open file"),
                Key("previous_tab", "Previous open file"),
                Key("close", "Close the file", "close"),
                Key("discard", "Close the file and discard unsaved text"),
                Key("merge", "Changed on disk: see the difference, and merge", writes=True),
                Key("reload", "Reload the file from disk"),
                Key("diff", "Compare the file with the last commit or any apply"),
                Key("overwrite", "Save over what is on disk"),
                Key("outside", "Open the file in your own editor ($EDITOR)"),
            ),
            "the editor",
        ),
        RegisteredPane(
            "review",
            "Review",
            "review:ReviewPane",
            (Slot("middle-low"), Slot("left", 1), Slot("all", 1)),
            (
                Key("apply", "Apply the hunk", "apply"),
                Key("skip", "Skip the hunk", "skip"),
                Key("apply_file", "Apply the whole file"),
                Key("skip_file", "Skip the whole file"),
                Key("apply_all", "Apply all pending changes", "all"),
                Key("skip_all", "Skip all pending changes"),
                Key("apply_todo", "Apply all changes of the same todo"),
                Key("skip_todo", "Skip all changes of the same todo"),
                Key("undo", "Undo the last apply", "undo"),
                Key("redo", "Redo the last undo"),
                Key("take_back", "Take the applied hunk back"),
                Key("take_back_file", "Take the applied change to the file back"),
                Key("take_back_todo", "Take back what was applied for the same todo"),
                Key("history", "Undo or redo any apply"),
                Key("edit", "Edit the hunk by hand", "edit", writes=True),
                Key("open", "Open the file at the hunk"),
                Key("diff", "Compare the file with the last commit or any apply"),
                Key("yours", "Conflict: keep the file's lines"),
                Key("theirs", "Conflict: take the proposed lines"),
                Key("both", "Conflict: take both"),
                Key("give_back", "Conflict of two sub-tasks: let one do its part again", writes=True),
                Key("columns", "Show the diff side by side, or in one column"),
                Key("next_hunk", "Next hunk", "hunk"),
                Key("previous_hunk", "Previous hunk"),
                Key("next_file", "Next changed file", "file"),
                Key("previous_file", "Previous changed file"),
                Key("comment", "Comment on the hunk, for the model", writes=True),
            ),
        ),
        RegisteredPane(
            "chat",
            "Chat",
            "chat:ChatPane",
            (Slot("right"), Slot("right"), Slot("all")),
            (
                Key("send", "Send the message", "send"),
                Key("newline", "New line", writes=True),
                Key("older", "Earlier message of yours"),
                Key("newer", "Later message of yours"),
                Key("page_up", "Scroll the chat up"),
                Key("page_down", "Scroll the chat down"),
                Key("bottom", "Go to the newest message"),
                Key("go_on", "Edit the next request", writes=True),
                Key("reasoning", "Show or fold the model's thinking"),
                Key("copy", "Copy the last answer"),
                Key("blocks", "Walk through messages and code: y copies, o opens"),
                Key("search", "Find words in the chat"),
                Key("history", "Find a message you sent"),
                Key("retry", "Send the message that failed again", writes=True),
                Key("tell_output", "Put what the last command printed into the prompt", writes=True),
                Key("unqueue", "Take the last waiting message back into the input"),
                Key("drop_queue", "Drop the messages that wait"),
                Key("btw", "Ask a side question, beside the conversation", writes=True),
                Key("goal", "Work until checks or a condition hold", writes=True),
                Key("paste_picture", "Put the picture of the clipboard into the message", writes=True),
                Key("outside", "Write the message in your own editor ($EDITOR)", writes=True),
            ),
        ),
        RegisteredPane(
            "todos",
            "Todos",
            "todos:TodosPane",
            (Slot("right-low-1"), Slot("right-low", 1), Slot("all", 5)),
            (
                Key("toggle", "Tick the todo", "tick"),
                Key("add", "Add a todo", "add", writes=True),
                Key("edit", "Edit the todo", "edit", writes=True),
                Key("remove", "Remove the todo", "remove"),
                Key("move_up", "Move the todo up"),
                Key("move_down", "Move the todo down"),
            ),
        ),
        RegisteredPane(
            "subtasks",
            "Sub-tasks",
            "subtasks:SubTasksPane",
            (Slot("right-low-2"), Slot("right-low", 2), Slot("all", 6)),
            (
                Key("next", "Next sub-task"),
                Key("previous", "Previous sub-task"),
                Key("run", "Run the sub-task", "run"),
                Key("run_ticked", "Run all sub-tasks that are ticked", "run ticked"),
                Key("tick", "Tick the sub-task for the batch", "tick"),
                Key("chat", "Open the chat of the sub-task", "chat"),
                Key("changes", "See the changes of the sub-task in the review", "changes"),
                Key("skip", "Skip the sub-task", "skip"),
                Key("retry", "Run the sub-task again", "retry"),
                Key("stop", "Stop the sub-task", "stop"),
                Key("stop_all", "Stop all sub-tasks"),
                Key("add", "Add a sub-task", writes=True),
                Key("edit", "Edit the goal and the files of the sub-task", writes=True),
                Key("connect", "Choose what the sub-task waits for", writes=True),
                Key("remove", "Remove the sub-task", writes=True),
                Key("fold", "Hide the sub-tasks that are done, or show them"),
                Key("filter", "Show only sub-tasks with certain words"),
                Key("follow", "Keep the cursor on what runs, or let it stay"),
            ),
            "the sub-tasks",
        ),
    )
}
#: Panes mounted after the chat, hidden ones last.
AFTER_THE_CHAT = sorted(
    (pane for pane in PANES.values() if pane.id != "chat"), key=lambda pane: pane.slots[0].tab > 0
)

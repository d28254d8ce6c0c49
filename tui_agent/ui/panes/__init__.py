"""Registry of the panes: id, title, class, screen slots and key actions."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Slot(NamedTuple):
    """`tab` is the order in the region (see `layout.areas`)."""

    name: str
    tab: int = 0


class Key(NamedTuple):
    """`hint` is its footer label."""

    name: str
    words: str
    hint: str = ""


class RegisteredPane(NamedTuple):
    """`source` is its module and class; `slots` are for wide, medium and narrow screens."""

    id: str
    title: str
    source: str
    slots: tuple[Slot, Slot, Slot]
    keys: tuple[Key, ...]
    #: Name in sentences, if not the id.
    called: str = ""

    def load(self) -> type[Any]:
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
            (Slot("left"), Slot("side"), Slot("all", 3)),
            (
                Key("open", "Open the file, or the folder", "open"),
                Key("find", "Find a file", "find"),
                Key("mention", "Mention the file in the chat", "mention"),
                Key("diff", "Compare the file with the last commit or any apply", "diff"),
                Key("reveal", "Go to the file of the editor"),
            ),
        ),
        RegisteredPane(
            "plan",
            "Plan",
            "plan:PlanPane",
            (Slot("left-plan"), Slot("side-plan"), Slot("all", 4)),
            (
                Key("choose", "Use the selected file", "choose"),
                Key("let_go", "Continue without the file", "leave out"),
                Key("retry", "Search for the file again", "retry"),
                Key("edit", "Edit the patterns", "patterns"),
                Key("other", "Choose another file", "other"),
                Key("open", "Open the file", "open"),
            ),
        ),
        RegisteredPane(
            "known",
            "Known",
            "known_files:KnownPane",
            (Slot("left-known"), Slot("side-known"), Slot("all", 7)),
            (
                Key("open", "Open the file", "open"),
                Key("timeline", "Switch between the file's timeline and the table", "timeline"),
            ),
            "the known files",
        ),
        RegisteredPane(
            "buffers",
            "Editor",
            "buffers:BuffersPane",
            (Slot("middle"), Slot("centre", 2), Slot("all", 2)),
            (
                Key("save", "Save the file", "save"),
                Key("find", "Find in the file", "find"),
                Key("replace", "Replace in the file", "replace"),
                Key("replace_all", "Replace all matches, after a preview"),
                Key("find_case", "Switch case-sensitive search on or off"),
                Key("find_regex", "Switch regular expressions on or off"),
                Key("find_selection", "Switch search in the selection on or off"),
                Key("goto_line", "Go to a line"),
                Key("symbol", "Go to a symbol: class, function or heading"),
                Key("bracket", "Go to the matching bracket"),
                Key("comment", "Comment or uncomment the lines"),
                Key("duplicate", "Duplicate the lines"),
                Key("line_up", "Move the lines up"),
                Key("line_down", "Move the lines down"),
                Key("wrap", "Switch line wrapping on or off"),
                Key("next_tab", "Next open file"),
                Key("previous_tab", "Previous open file"),
                Key("close", "Close the file", "close"),
                Key("discard", "Close the file and discard unsaved text"),
                Key("merge", "Changed on disk: compare and merge"),
                Key("reload", "Reload the file from disk"),
                Key("diff", "Compare the file with the last commit or any apply"),
                Key("overwrite", "Overwrite the file on disk"),
                Key("outside", "Open the file in your own editor ($EDITOR)"),
            ),
            "the editor",
        ),
        RegisteredPane(
            "review",
            "Review",
            "review:ReviewPane",
            (Slot("middle-low"), Slot("centre", 1), Slot("all", 1)),
            (
                Key("apply", "Apply the change", "apply"),
                Key("skip", "Skip the change", "skip"),
                Key("apply_file", "Apply the whole file"),
                Key("skip_file", "Skip the whole file"),
                Key("apply_all", "Apply all pending changes", "all"),
                Key("skip_all", "Skip all pending changes"),
                Key("apply_todo", "Apply all changes of the same todo"),
                Key("skip_todo", "Skip all changes of the same todo"),
                Key("undo", "Undo the last apply", "undo"),
                Key("redo", "Redo the last undo"),
                Key("take_back", "Undo the applied change, or decide again"),
                Key("take_back_file", "Undo the file's changes, or decide again"),
                Key("take_back_todo", "Undo the todo's changes, or decide again"),
                Key("history", "Undo or redo any apply"),
                Key("edit", "Edit the change", "edit"),
                Key("open", "Open the file at the change"),
                Key("diff", "Compare the file with the last commit or any apply"),
                Key("yours", "Conflict: keep the lines of the file"),
                Key("theirs", "Conflict: take the proposed lines"),
                Key("both", "Conflict: take both"),
                Key("give_back", "Conflict of two sub-tasks: return it to one of them"),
                Key("columns", "Switch between one and two columns"),
                Key("next_hunk", "Next change", "next"),
                Key("previous_hunk", "Previous change"),
                Key("next_file", "Next changed file", "file"),
                Key("previous_file", "Previous changed file"),
                Key("comment", "Comment on the change, for the model"),
                Key("allow_host", "Allow hosts that an agent asked for"),
            ),
        ),
        RegisteredPane(
            "chat",
            "Chat",
            "chat:ChatPane",
            (Slot("right"), Slot("centre"), Slot("all")),
            (
                Key("send", "Send the message", "send"),
                Key("newline", "New line"),
                Key("older", "Your previous message"),
                Key("newer", "Your next message"),
                Key("page_up", "Scroll the chat up"),
                Key("page_down", "Scroll the chat down"),
                Key("bottom", "Go to the newest message"),
                Key("go_on", "Edit the next request"),
                Key("reasoning", "Show or hide the model's thinking"),
                Key("copy", "Copy the last answer"),
                Key("blocks", "Walk through messages and code"),
                Key("search", "Search the chat"),
                Key("history", "Search your messages"),
                Key("retry", "Send the failed message again"),
                Key("tell_output", "Insert the last command's output into the prompt"),
                Key("unqueue", "Edit the last queued message"),
                Key("drop_queue", "Discard the queued messages"),
                Key("btw", "Ask a side question"),
                Key("goal", "Work until checks pass or a condition holds"),
                Key("paste_picture", "Put the picture of the clipboard into the message"),
                Key("outside", "Write the message in your own editor ($EDITOR)"),
            ),
        ),
        RegisteredPane(
            "todos",
            "Todos",
            "todos:TodosPane",
            (Slot("right-low-1"), Slot("side-todos"), Slot("all", 5)),
            (
                Key("toggle", "Tick the todo", "tick"),
                Key("add", "Add a todo", "add"),
                Key("edit", "Edit the todo", "edit"),
                Key("remove", "Remove the todo", "remove"),
                Key("move_up", "Move the todo up"),
                Key("move_down", "Move the todo down"),
            ),
        ),
        RegisteredPane(
            "subtasks",
            "Sub-tasks",
            "subtasks:SubTasksPane",
            (Slot("right-low-2"), Slot("centre", 3), Slot("all", 6)),
            (
                Key("next", "Next sub-task"),
                Key("previous", "Previous sub-task"),
                Key("run", "Run the sub-task", "run"),
                Key("run_ticked", "Run all ticked sub-tasks", "run ticked"),
                Key("tick", "Tick the sub-task for the batch", "tick"),
                Key("chat", "Open the chat of the sub-task", "chat"),
                Key("changes", "Show the changes of the sub-task in the review", "changes"),
                Key("skip", "Skip the sub-task", "skip"),
                Key("retry", "Run the sub-task again", "retry"),
                Key("stop", "Stop the sub-task", "stop"),
                Key("stop_all", "Stop all sub-tasks"),
                Key("add", "Add a sub-task"),
                Key("edit", "Edit the sub-task"),
                Key("connect", "Choose the dependencies of the sub-task"),
                Key("remove", "Remove the sub-task"),
                Key("fold", "Show or hide completed sub-tasks"),
                Key("filter", "Filter the sub-tasks"),
                Key("follow", "Follow the running sub-task, or not"),
            ),
            "the sub-tasks",
        ),
    )
}
#: In mounting order, hidden panes last.
AFTER_THE_CHAT = sorted(
    (pane for pane in PANES.values() if pane.id != "chat"), key=lambda pane: pane.slots[0].tab > 0
)

"""A larger piece of work as a small graph that runs: two tasks wait for one, a fourth for both."""

from __future__ import annotations

from tui_agent.rehearsal.requests import SUB_TASKS_REQUEST
from tui_agent.rehearsal.scenes.parts import CLIENT, COMMAND, MODEL, WORDS
from tui_agent.rehearsal.scenes.scene import Scene

SUB_TASKS = Scene(
    request=SUB_TASKS_REQUEST,
    answer={
        "summary": "Cancelling an order is four sub-tasks, of which one is ready.",
        "message": (
            "The parts and what they wait for are drawn in the sub-tasks pane (**Ctrl+O s**, and **F9** for the "
            "whole screen):\n"
            "\n"
            "- `model` comes first: both others build on it\n"
            "- `client` and `words` do not touch each other's files, so they run at once\n"
            "- `command` waits for both, and begins with what they did\n"
            "\n"
            "All four are ticked: **R** in that pane runs them, each in a copy of the project of its own. **Enter** "
            "shows what one of them says, **F10** stops everything. What they change comes together in the review "
            "(**F5**), and nothing is written before you apply it.\n"
        ),
        "subTasks": [
            {
                "id": "model",
                "goal": MODEL,
                "files": ["shop/models.py", "tests/test_models.py"],
                "dependencies": [],
                "autoExecute": True,
            },
            {
                "id": "client",
                "goal": CLIENT,
                "files": ["shop/clients/orders_v2.py", "tests/test_clients.py"],
                "dependencies": ["model"],
                "autoExecute": True,
            },
            {
                "id": "words",
                "goal": WORDS,
                "files": ["shop/cli.py"],
                "dependencies": ["model"],
                "autoExecute": True,
            },
            {
                "id": "command",
                "goal": COMMAND,
                "files": ["shop/cli.py", "README.md"],
                "dependencies": ["client", "words"],
                "autoExecute": True,
            },
        ],
        "nextSteps": [],
    },
    tokens_in=9127,
    tokens_out=384,
    cached=8200,
)

"""The one-cell marks for the states of things, each with the meaning that colours it."""

from __future__ import annotations

from tui_agent.ui.widgets.lines import Piece

#: File actions of the plan.
ACTIONS = {
    "waiting": Piece("·", "muted"),
    "looking": Piece("●", "running"),
    "loaded": Piece("✓", "done"),
    "asking": Piece("?", "warning"),
    "skipped": Piece("–", "muted"),
    "create": Piece("+", "added"),
    "failed": Piece("✗", "failed"),
}
#: Attempts of an action; a miss is part of looking and no failure.
ATTEMPTS = {
    "looking": Piece("●", "running"),
    "hit": Piece("✓", "done"),
    "miss": Piece("✗", "muted"),
    "too_broad": Piece("✗", "warning"),
    "invalid": Piece("✗", "warning"),
    "timeout": Piece("✗", "warning"),
}
UNTRIED = Piece("·", "faint")
CHANGES = {
    "pending": Piece("·", "accent"),
    "merged": Piece("·", "accent"),
    "conflict": Piece("!", "failed"),
    "applied": Piece("✓", "done"),
    "skipped": Piece("–", "muted"),
    "undone": Piece("–", "muted"),
    "failed": Piece("✗", "failed"),
}
TASKS = {
    "pending": Piece("○", "muted"),
    "ready": Piece("○", "accent"),
    "running": Piece("●", "running"),
    "completed": Piece("✓", "done"),
    "failed": Piece("✗", "failed"),
    "skipped": Piece("–", "muted"),
    "cancelled": Piece("×", "muted"),
}
DONE = Piece("✓", "done")
OPEN = Piece("○")

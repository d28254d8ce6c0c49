"""The model's child process, not started yet."""

from __future__ import annotations

from collections.abc import Mapping

from tui_agent.processes.child import ChildProcess
from tui_agent.processes.environment import for_models

WORKER = "tui_agent.model.worker"


def model_process(environment: Mapping[str, str] | None = None) -> ChildProcess:
    """`environment` is added to our own provider variables."""
    return ChildProcess(WORKER, name="model", env={**for_models(), **(environment or {})})

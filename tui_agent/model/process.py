"""The child process that sends model requests, not started yet. `ChildModel` starts one or receives a started
one."""

from __future__ import annotations

from collections.abc import Mapping

from tui_agent.processes.child import ChildProcess
from tui_agent.processes.environment import for_models

WORKER = "tui_agent.model.worker"


def model_process(environment: Mapping[str, str] | None = None) -> ChildProcess:
    """The process, with `environment` added to our own provider variables."""
    return ChildProcess(WORKER, name="model", env={**for_models(), **(environment or {})})

"""The process that asks providers, not started yet: `ChildModel` has one, or is given one that was started ahead."""

from __future__ import annotations

from collections.abc import Mapping

from tui_agent.processes.child import ChildProcess
from tui_agent.processes.environment import for_models

WORKER = "tui_agent.model.worker"


def model_process(environment: Mapping[str, str] | None = None) -> ChildProcess:
    """The process, with `environment` added to the keys and addresses of providers in ours."""
    return ChildProcess(WORKER, name="model", env={**for_models(), **(environment or {})})

"""Which model answers: the child that runs litellm, a recording, either of them recorded."""

from __future__ import annotations

from pathlib import Path

from tui_agent.model.client import Model
from tui_agent.settings.schema import Settings
from tui_agent.store.events import ModelChosen, ModelStatusChanged
from tui_agent.store.state import ModelSlice
from tui_agent.store.store import Store


def make_model(
    settings: Settings, replay: Path | None, record: Path | None, store: Store
) -> tuple[Model, str]:
    """The model as the options say, and its name ("" where none is configured).

    Nothing is started yet, and litellm is not imported here or later.
    """
    name = settings.model or store.state.model.name  # one that was chosen on the screen stays chosen
    if replay is not None:
        from tui_agent.model.recording import RecordedModel

        recorded = RecordedModel(replay)
        model: Model = recorded
        name = recorded.recording.header.model
        recorded.forget(message.text for message in store.state.chat.messages if message.kind == "person")
    else:
        from tui_agent.model.child import ChildModel

        model = ChildModel(on_status=lambda status: store.emit(ModelStatusChanged(status)))
    if record is None:
        return model, name
    from tui_agent.model.recording import Recorder

    return Recorder(model, record), name


def is_chosen(now: ModelSlice, event: ModelChosen) -> bool:
    """Whether the state says all this already."""
    return all(getattr(now, name) == getattr(event, name) for name in event.__struct_fields__)

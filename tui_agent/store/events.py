"""All events. Only events change the state."""

from __future__ import annotations

from tui_agent.store.conversation_events import *  # noqa: F403  # noqa: F403
from tui_agent.store.event import Event as Event
from tui_agent.store.event import Growing as Growing
from tui_agent.store.event import Lasting as Lasting
from tui_agent.store.event import Passing as Passing
from tui_agent.store.session_events import *  # noqa: F403  # noqa: F403
from tui_agent.store.task_events import *  # noqa: F403  # noqa: F403
from tui_agent.store.turn_events import *  # noqa: F403

#: Logged events by serialised name.
LASTING: dict[str, type[Lasting]] = {kind.__name__: kind for kind in Lasting.__subclasses__()}
GROWING: dict[str, type[Growing]] = {kind.__name__: kind for kind in Growing.__subclasses__()}

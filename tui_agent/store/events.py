"""Everything that can happen, in the past tense: the only way in which the state changes.

The vocabulary in one place, as everybody uses it: each class of the modules named here is part of it.
"""

from __future__ import annotations

from tui_agent.store.command_events import *  # noqa: F403
from tui_agent.store.conversation_events import *  # noqa: F403
from tui_agent.store.event import Event as Event
from tui_agent.store.event import Growing as Growing
from tui_agent.store.event import Lasting as Lasting
from tui_agent.store.event import Passing as Passing
from tui_agent.store.file_events import *  # noqa: F403
from tui_agent.store.review_events import *  # noqa: F403
from tui_agent.store.session_events import *  # noqa: F403
from tui_agent.store.task_events import *  # noqa: F403
from tui_agent.store.turn_events import *  # noqa: F403

#: What the log keeps, by the name under which it does.
LASTING: dict[str, type[Lasting]] = {kind.__name__: kind for kind in Lasting.__subclasses__()}
GROWING: dict[str, type[Growing]] = {kind.__name__: kind for kind in Growing.__subclasses__()}

"""The shape of a reply and its functions, as the shipped file and the tools make them."""

from __future__ import annotations

from pathlib import Path

from tui_agent.answers import schema
from tui_agent.tools import registry

CONFIG = Path(__file__).parents[2] / "config"
TOOLS = registry.switched_on()
RESPONSE = registry.reply_schema(schema.load(CONFIG).response, TOOLS)
FUNCTIONS = [tool.function for tool in TOOLS]

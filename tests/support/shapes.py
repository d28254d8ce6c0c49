"""The shape of a reply and its functions, as the shipped file and the tools make them."""

from __future__ import annotations

import json
from pathlib import Path

from tui_agent.tools import registry

CONFIG = Path(__file__).parents[2] / "config"
TOOLS = registry.switched_on()
SHIPPED = json.loads((CONFIG / "response-schema.json").read_text())
PLANNING = json.loads((CONFIG / "planning-schema.json").read_text())
RESPONSE = registry.reply_schema(SHIPPED, TOOLS)
FUNCTIONS = [tool.function for tool in TOOLS]

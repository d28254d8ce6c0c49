"""The shape of a reply and its functions, as the shipped file and the tools make them."""

from __future__ import annotations

import json
from pathlib import Path

from tui_agent.tools.tool import reply_schema, switched_on

CONFIG = Path(__file__).parents[2] / "config"
TOOLS = switched_on()
SHIPPED = json.loads((CONFIG / "response-schema.json").read_text())
PLANNING = json.loads((CONFIG / "planning-schema.json").read_text())
RESPONSE = reply_schema(SHIPPED, TOOLS)
FUNCTIONS = [tool.function for tool in TOOLS]

"""Writes docs/settings.md from config/settings.toml, whose comments are those of the schema. Run by `make site`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "settings.md"
HEAD = """# Settings

All settings with their defaults. Set a value in your `settings.toml` (`tui-agent config path` prints its folder), in
the environment (`TUI_AGENT_BUNDLING__MAX_FILES=3`), or with `--set bundling.max_files=3`. `tui-agent config show`
prints the source of each value. A [trusted](security.md) workspace can set some of them in
`.tui-agent/settings.toml`.
"""


def page() -> str:
    text = (ROOT / "config" / "settings.toml").read_text("utf-8").partition("\n\n")[2]
    sections = re.split(r"^\[(\w+)\]\n", f"[general]\n{text}", flags=re.MULTILINE)[1:]
    parts = [HEAD]
    for name, body in zip(sections[::2], sections[1::2], strict=True):
        prefix = "" if name == "general" else f"{name}."
        rows = re.findall(r"^# (\S.*)\n(\w+) = (.+)$", body, re.MULTILINE)
        parts.append(f"\n## {name}\n\n| setting | default | meaning |\n|---|---|---|\n")
        for meaning, key, default in rows:
            escaped = meaning.replace("|", "\\|")
            parts.append(f"| `{prefix}{key}` | `{default}` | {escaped} |\n")
        if example := re.findall(r"^#   (.*)$", body, re.MULTILINE):
            parts.append("\n```toml\n" + "\n".join(example) + "\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

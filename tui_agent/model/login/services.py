"""Services of `tui-agent login`, and subscriptions restricted to their vendors' programs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from tui_agent.errors import UsageError
from tui_agent.files.text import escaped
from tui_agent.model.model_table import suggestion, today
from tui_agent.model.rules import rules_of


class LoginService(Struct, frozen=True):
    """The login reaches models of `provider`; it sets the variables `key`, `address` and `account`."""

    name: str
    title: str
    provider: str
    key: str
    address: str = ""
    account: str = ""

    @property
    def suggestion(self) -> str:
        return suggestion(self.provider, today())

    @property
    def only_login(self) -> bool:
        return rules_of(self.provider).login


COPILOT = LoginService(
    "copilot", "GitHub Copilot", "github_copilot", "GITHUB_COPILOT_TOKEN", "GITHUB_COPILOT_API_BASE"
)
CHATGPT = LoginService("chatgpt", "ChatGPT", "chatgpt", "CHATGPT_ACCESS_TOKEN", account="CHATGPT_ACCOUNT_ID")
OPENROUTER = LoginService("openrouter", "OpenRouter", "openrouter", "OPENROUTER_API_KEY")
SERVICES = (COPILOT, CHATGPT, OPENROUTER)
#: Restricted subscriptions: vendor, program, key variable.
_OWN_PROGRAMS = {
    "claude": ("A Claude subscription", "Anthropic's", "Claude Code itself", "ANTHROPIC_API_KEY"),
    "anthropic": ("A Claude subscription", "Anthropic's", "Claude Code itself", "ANTHROPIC_API_KEY"),
    "gemini": ("A Gemini subscription", "Google's", "Gemini CLI itself", "GEMINI_API_KEY"),
    "google": ("A Gemini subscription", "Google's", "Gemini CLI itself", "GEMINI_API_KEY"),
}


def service(name: str) -> LoginService:
    found = next((one for one in SERVICES if one.name == name), None)
    if found is not None:
        return found
    if name in _OWN_PROGRAMS:
        plan, whose, program, variable = _OWN_PROGRAMS[name]
        raise UsageError(
            f"{plan} can be used only in {whose} own programs", f"use {program}, or set {variable} to a key"
        )
    names = ", ".join(one.name for one in SERVICES)
    raise UsageError(f"there is no service {escaped(name)}", f"write one of {names}")


def service_of(model: str) -> LoginService | None:
    provider, slash, _ = model.partition("/")
    return next((one for one in SERVICES if slash and one.provider == provider), None)


def by_login(model: str) -> bool:
    """Whether a model requires our login. litellm would start its own."""
    found = service_of(model.lower())
    return found is not None and found.only_login


def needed(model: str, environment: Mapping[str, str]) -> LoginService | None:
    found = service_of(model)
    return None if found is None or any(map(environment.get, rules_of(found.provider).keys)) else found


#: Variables that replace the services' addresses in tests; workspace files cannot set them.
BASES = {
    "copilot": "TUI_AGENT_LOGIN_GITHUB",
    "chatgpt": "TUI_AGENT_LOGIN_OPENAI",
    "openrouter": "TUI_AGENT_LOGIN_OPENROUTER",
}


def base(name: str, otherwise: str) -> str:
    return (os.environ.get(BASES[name]) or otherwise).rstrip("/")

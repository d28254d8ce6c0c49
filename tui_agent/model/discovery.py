"""Usable models: providers with configured keys, and local servers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from msgspec import Struct

from tui_agent.model import servers
from tui_agent.model.login.services import SERVICES, needed
from tui_agent.model.login.store import LoginStore
from tui_agent.model.model_table import all_providers
from tui_agent.model.servers import Kind, ServerMemory

MOST_MODELS = 20


class Suggestion(Struct, frozen=True):
    """`because` is the reason; `environment` holds required variables."""

    model: str
    because: str
    environment: dict[str, str] = {}


#: Default ports of Ollama, LM Studio, llama.cpp and vLLM.
PORTS = (11434, 1234, 8080, 8000)
#: Prefixes of litellm model names, none of a paid provider, which a local prompt must not reach by mistake.
_PREFIXES: dict[Kind, str] = {
    "Ollama": "ollama_chat",
    "LM Studio": "lm_studio",
    "llama.cpp": "llamafile",
    "llama-cpp-python": "llamafile",
    "vLLM": "hosted_vllm",
    "": "llamafile",
}
#: Variables with a server's address, and its model name prefix.
_VARIABLES = (
    ("OPENAI_API_BASE", "openai"),
    ("OPENAI_BASE_URL", "openai"),
    ("OLLAMA_API_BASE", "ollama_chat"),
    ("LM_STUDIO_API_BASE", "lm_studio"),
    ("LLAMAFILE_API_BASE", "llamafile"),
    ("HOSTED_VLLM_API_BASE", "hosted_vllm"),
)
_VARIABLE_OF = {prefix: variable for variable, prefix in reversed(_VARIABLES)}


async def discover(
    environment: Mapping[str, str] | None = None,
    ports: tuple[int, ...] = PORTS,
    memory: ServerMemory | None = None,
) -> tuple[Suggestion, ...]:
    """Keys first, then responsive servers, within about half a second.

    `memory` stores discovered addresses, and skips servers that process one of our requests.
    """
    environment = os.environ if environment is None else environment
    named = {
        environment[variable].rstrip("/"): prefix
        for variable, prefix in reversed(_VARIABLES)
        if environment.get(variable) and servers.is_local(environment[variable])
    }
    taken = {variable for variable, _ in _VARIABLES if environment.get(variable)}
    places = list(named.items())
    roots = {servers.root_of(address).replace("localhost", "127.0.0.1") for address in named}
    places += [(root, "") for port in ports if (root := f"http://127.0.0.1:{port}") not in roots]
    answers = await asyncio.gather(
        *(_models(address, prefix, environment, taken, memory) for address, prefix in places)
    )
    local = tuple(suggestion for suggestions in answers for suggestion in suggestions)
    if memory is not None:
        for suggestion in local:
            memory.found(suggestion.model, suggestion.environment)
    return (*with_keys(environment), *with_logins(environment), *local)


def with_logins(environment: Mapping[str, str]) -> list[Suggestion]:
    found = []
    for name, login in LoginStore().names().items():
        service = next((one for one in SERVICES if one.name == name and not login.ended), None)
        if service is not None and needed(f"{service.provider}/any", environment):
            found.append(Suggestion(service.suggestion, f"logged in to {service.title}"))
    return found


def with_keys(environment: Mapping[str, str]) -> list[Suggestion]:
    found = []
    for provider in all_providers():
        key = next((name for name in provider.keys if environment.get(name)), None)
        addresses = (environment.get(name, "") for name, prefix in _VARIABLES if prefix == provider.name)
        elsewhere = any(map(servers.is_local, addresses))
        if key and provider.suggestion and not elsewhere:
            found.append(Suggestion(provider.suggestion, f"{key} is set"))
    return found


async def _models(
    address: str,
    prefix: str,
    environment: Mapping[str, str],
    taken: set[str],
    memory: ServerMemory | None,
) -> list[Suggestion]:
    if memory is not None and memory.is_busy(address):
        return []
    root = servers.root_of(address)
    key = environment.get("OPENAI_API_KEY", "") if prefix == "openai" else ""
    listings = await asyncio.gather(
        servers.listed(address if prefix else f"{root}/v1", key), servers.read(f"{root}/api/tags", key)
    )
    names = [
        str(model.get("id") or model.get("name") or "")
        for listing in reversed(listings)
        for model in servers.entries(listing)
    ]
    names = [name for name in dict.fromkeys(names) if name][:MOST_MODELS]
    if not names:
        return []
    server = await servers.examine(address, names[0], key)
    kind = server.kind if server else ""
    because = f"{kind or 'a server'} answers {servers.display_address(root)}"
    if prefix:
        dummy = {"OPENAI_API_KEY": "none"} if prefix == "openai" and not key else {}
        return [Suggestion(f"{prefix}/{name}", because, dummy) for name in names]
    prefix = _PREFIXES[kind]
    variable = _VARIABLE_OF[prefix]
    if variable in taken:
        return []
    base = root if kind == "Ollama" else f"{root}/v1"
    return [Suggestion(f"{prefix}/{name}", because, {variable: base}) for name in names]

"""Makes `tui_agent/model/models.json` from litellm: `python tests/support/model_table.py`, or `make models`."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tui_agent.model import table
from tui_agent.model.litellm_client import abilities, litellm
from tui_agent.model.table import KnownModel, KnownProvider, ModelTable, Price

#: Providers that are reached directly; a test sends the same requests through litellm and compares what arrives.
PROVIDERS = {
    "openai": KnownProvider(
        "openai",
        "https://api.openai.com/v1",
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        ("OPENAI_API_KEY",),
        variables={"OpenAI-Organization": "OPENAI_ORGANIZATION", "OpenAI-Project": "OPENAI_PROJECT"},
    ),
    "anthropic": KnownProvider(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        ("ANTHROPIC_API_KEY",),
    ),
    "deepseek": KnownProvider(
        "openai", "https://api.deepseek.com/beta", ("DEEPSEEK_API_BASE",), ("DEEPSEEK_API_KEY",)
    ),
    "xai": KnownProvider("openai", "https://api.x.ai/v1", ("XAI_API_BASE",), ("XAI_API_KEY",)),
    "groq": KnownProvider(
        "openai", "https://api.groq.com/openai/v1", ("GROQ_API_BASE",), ("GROQ_API_KEY",), schema=False
    ),
    "openrouter": KnownProvider(
        "openai",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_BASE",),
        ("OPENROUTER_API_KEY", "OR_API_KEY"),
        body={"usage": {"include": True}},
    ),
    "hosted_vllm": KnownProvider(
        "openai",
        "",
        ("HOSTED_VLLM_API_BASE",),
        ("HOSTED_VLLM_API_KEY",),
        key="fake-api-key",
        drops=("thinking_blocks",),
    ),
    "llamafile": KnownProvider(
        "openai",
        "http://127.0.0.1:8080/v1",
        ("LLAMAFILE_API_BASE",),
        ("LLAMAFILE_API_KEY",),
        key="fake-api-key",
    ),
    "lm_studio": KnownProvider(
        "openai", "", ("LM_STUDIO_API_BASE",), ("LM_STUDIO_API_KEY",), key="fake-api-key"
    ),
}
_ABOVE = re.compile(r"input_cost_per_token_above_(\d+)(k?)_tokens$")
#: A usage for every price: input, output, from a cache, into one.
USAGES = [
    (1_000, 0, 0, 0),
    (1_000, 7, 900, 0),
    (1_000, 7, 0, 900),
    (150_000, 9, 9_000, 0),
    (205_000, 9, 5, 0),
]
USAGES += [(300_000, 9, 5, 0), (100_000, 1, 0, 0), (128_000, 1, 0, 0), (200_000, 1, 0, 0), (272_000, 1, 0, 0)]


def made() -> ModelTable:
    """The table as litellm would have it now."""
    providers = {
        name: msgspec.structs.replace(one, models=dict(_models(name))) for name, one in PROVIDERS.items()
    }
    return ModelTable(importlib.metadata.version("litellm"), rules(), providers)


def rules() -> tuple[str, ...]:
    from litellm.litellm_core_utils.fallback_generalizations import get_fallback_generalization_rules

    litellm()
    return (
        *(rule["pattern"] for rule in get_fallback_generalization_rules() if rule.get("model_info")),
        r"^ft:",
    )


def _models(provider: str) -> Iterator[tuple[str, KnownModel]]:
    for key in sorted(litellm().model_cost):
        info = litellm().model_cost[key]
        name = key.removeprefix(f"{provider}/")
        if info.get("litellm_provider") == provider and info.get("mode") in ("chat", "responses"):
            yield name, _model(f"{provider}/{name}", provider, info)


def _model(name: str, provider: str, info: dict[str, Any]) -> KnownModel:
    known = abilities(name)
    if not known.known:
        return KnownModel(0, 0, "l")
    letters = "".join(
        letter
        for letter, able in (
            ("t", known.tools),
            ("s", known.schema),
            ("c", known.cache_marks),
            ("v", known.sees),
            ("o", provider == "anthropic" and takes_output_format(name)),
            ("r", provider == "openai" and bridged(name, tools=True)),
        )
        if able
    )
    model = KnownModel(known.window, info.get("max_output_tokens") or 0, letters, _prices(provider, info))
    told = bool(info.get("supports_system_messages", provider != "openai" or not is_o_series(name)))
    by_the_hour = bool(info.get("off_peak_pricing"))  # the table knows no clock
    if bridged(name, tools=False) or not told or not model.prices or by_the_hour or not agrees(name, model):
        return msgspec.structs.replace(model, can=letters + "l", prices=())
    return model


def takes_output_format(name: str) -> bool:
    """Whether litellm hands a schema on as it is, and does not make a function of it."""
    shape = {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object"}}}
    options = litellm().utils.get_optional_params(
        model=name.partition("/")[2], custom_llm_provider="anthropic", response_format=shape
    )
    return "output_format" in options and "tools" not in options


def is_o_series(name: str) -> bool:
    """Whether litellm treats it as one of the models that took no system prompt at first."""
    return litellm().OpenAIOSeriesConfig().is_model_o_series_model(name.partition("/")[2])


def bridged(name: str, *, tools: bool) -> bool:
    """Whether litellm sends a request for a chat to another interface of the provider's."""
    from litellm.main import responses_api_bridge_check

    provider, _, model = name.partition("/")
    given = [{"type": "function", "function": {"name": "f"}}] if tools else None
    info, _ = responses_api_bridge_check(model, provider, tools=given, api_base=PROVIDERS[provider].address)
    return info.get("mode") == "responses"


def _prices(provider: str, info: dict[str, Any]) -> tuple[Price, ...]:
    if info.get("input_cost_per_token") is None or info.get("output_cost_per_token") is None:
        return ()
    found = (match for key in info if info[key] is not None and (match := _ABOVE.match(key)))
    steps = sorted(
        (int(match[1]) * (1000 if match[2] else 1), f"_above_{match[1]}{match[2]}_tokens") for match in found
    )
    prices: list[Price] = []
    for above, suffix in [(-1, ""), *steps]:
        before = prices[-1] if prices else None

        def one(key: str, otherwise: float, suffix: str = suffix) -> float:
            value = info.get(key + suffix)
            return otherwise if value is None else value

        given = one("input_cost_per_token", before.input if before else 0.0)
        inclusive = provider == "xai" and above > 0
        prices.append(
            Price(
                above - 1 if inclusive else above,
                given,
                one("output_cost_per_token", before.output if before else 0.0),
                one("cache_read_input_token_cost", before.cached if before else given),
                one("cache_creation_input_token_cost", before.made if before else given),
            )
        )
    return tuple(prices)


def agrees(name: str, model: KnownModel) -> bool:
    """Whether the prices of the table give what litellm says for every kind of usage."""
    return all(abs((model.cost(*usage) or 0) - litellm_cost(name, *usage)) < 1e-9 for usage in USAGES)


def litellm_cost(name: str, input: int, output: int, cached: int, made: int) -> float:
    from litellm.types.utils import PromptTokensDetailsWrapper, Usage

    details = PromptTokensDetailsWrapper(cached_tokens=cached, cache_creation_tokens=made)
    more = {"cache_read_input_tokens": cached, "cache_creation_input_tokens": made}
    more = more if name.startswith("anthropic/") else {}
    usage = Usage(
        prompt_tokens=input,
        completion_tokens=output,
        total_tokens=input + output,
        prompt_tokens_details=details,
        **more,  # ty: ignore[invalid-argument-type]
    )
    return sum(
        litellm().cost_per_token(
            model=name, prompt_tokens=input, completion_tokens=output, usage_object=usage
        )
    )


def encoded(models: ModelTable) -> bytes:
    """A line a model, so that a newer litellm is a small difference."""
    parts = []
    for name, provider in models.providers.items():
        bare = msgspec.json.encode(msgspec.structs.replace(provider, models={})).decode()
        known = (f'"{key}":{msgspec.json.encode(one).decode()}' for key, one in provider.models.items())
        listed = "{\n" + ",\n".join(known) + "\n}"
        parts.append(f'"{name}":{bare.removesuffix("{}}")}{listed}}}')
    joined = ",\n".join(parts)
    listed = msgspec.json.encode(models.rules).decode()
    return f'{{"litellm":"{models.litellm}","rules":{listed},"providers":{{\n{joined}\n}}}}\n'.encode()


if __name__ == "__main__":
    table.PATH.write_bytes(encoded(made()))

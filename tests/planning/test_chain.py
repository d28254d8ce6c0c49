"""A chain is tried in order, stops at the first hit, and tells every attempt."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tui_agent.answers.plans import FileAction
from tui_agent.planning.chain import OTHER_CASE, Attempt, ChainLimits, try_patterns
from tui_agent.workspace.index import Index, Matches

INDEX = Index(
    ["schema.ts", "src/api/schema.ts", "src/prompts/responseSchema.ts", "app/[slug]/page.tsx"]
    + [f"many/{number:02}.py" for number in range(25)]
)


async def attempts(
    *patterns: str, index: Index = INDEX, limits: ChainLimits | None = None, **how: Any
) -> list[Attempt]:
    action = FileAction("Schema", patterns, **how)
    return [attempt async for attempt in try_patterns(action, index, limits)]


async def ended(*patterns: str, **how: Any) -> list[tuple[str, str, int]]:
    found = await attempts(*patterns, **how)
    return [(a.pattern, a.outcome, a.matches) for a in found if a.outcome != "looking"]


async def test_every_attempt_is_told_when_it_starts_and_when_it_has_ended() -> None:
    found = await attempts("none.ts", "**/responseSchema.ts", "**/*")
    assert [(a.index, a.total, a.outcome) for a in found] == [
        (1, 3, "looking"),
        (1, 3, "miss"),
        (2, 3, "looking"),
        (2, 3, "hit"),
    ]
    assert found[-1].paths == ("src/prompts/responseSchema.ts",)
    assert found[-1].action == "Schema" and found[-1].ms >= 0


async def test_what_is_too_broad_or_invalid_passes_on() -> None:
    assert await ended("many/*.py", "../x", "!y", "**/none", "./schema.ts") == [
        ("many/*.py", "too_broad", 25),
        ("../x", "invalid", 0),
        ("!y", "invalid", 0),
        ("**/none", "miss", 0),
        ("./schema.ts", "hit", 1),
    ]
    broad, invalid = [a for a in await attempts("many/*.py", "../x") if a.outcome not in ("looking",)]
    assert broad.why == "25 files match; narrow the pattern" and len(broad.paths) == 5
    assert "leads out" in invalid.why


async def test_up_to_the_limit_all_are_loaded_the_nearest_to_the_root_first() -> None:
    found = await attempts("**/*{schema,Schema}.ts")
    assert found[-1].paths == ("schema.ts", "src/api/schema.ts", "src/prompts/responseSchema.ts")
    assert await ended("many/*.py", limits=ChainLimits(max_per_action=25)) == [("many/*.py", "hit", 25)]


async def test_a_batch_is_never_too_broad() -> None:
    found = await attempts("many/*.py", all=True)
    assert (found[-1].outcome, found[-1].matches, len(found[-1].paths)) == ("hit", 25, 25)
    cut = await attempts("many/*.py", all=True, limits=ChainLimits(max_batch=10))
    assert (cut[-1].outcome, cut[-1].matches, len(cut[-1].paths)) == ("hit", 25, 10)


async def test_a_path_is_looked_up_before_it_is_read_as_a_pattern() -> None:
    assert await ended("app/[slug]/page.tsx") == [("app/[slug]/page.tsx", "hit", 1)]


async def test_of_more_than_five_patterns_the_first_five() -> None:
    assert [a.total for a in await attempts(*"abcdefg")][-1] == 5
    assert len(await ended(*"abcdefg")) == 5


async def test_a_miss_for_letter_case_alone_is_tried_again_and_said() -> None:
    for pattern, path in (
        ("Schema.TS", "schema.ts"),
        ("SRC/api/schema.ts", "src/api/schema.ts"),
        ("**/*response*schema*.ts", "src/prompts/responseSchema.ts"),
        ("src/[P]rompts/**", "src/prompts/responseSchema.ts"),
    ):
        (*_, hit) = await attempts(pattern, "**/none")
        assert (hit.index, hit.outcome, hit.paths, hit.why) == (1, "hit", (path,), OTHER_CASE)
    assert await ended("MANY/*.py") == [("MANY/*.py", "too_broad", 25)]
    exact = Index(["a/Readme.md", "b/README.md"])
    (*_, hit) = await attempts("**/README.md", index=exact)
    assert (hit.paths, hit.why) == (("b/README.md",), "")


async def test_the_programs_patterns_come_after_the_models_and_are_counted_apart() -> None:
    found = await attempts("none.ts", "**/none.ts", by="model", extra=("schema.ts", "never.ts"))
    assert [(a.by, a.index, a.total, a.pattern) for a in found if a.outcome != "looking"] == [
        ("model", 1, 2, "none.ts"),
        ("model", 2, 2, "**/none.ts"),
        ("program", 1, 2, "schema.ts"),
    ]


async def test_a_chain_continues_behind_a_hit_that_could_not_be_loaded() -> None:
    action = FileAction("It", ("schema.ts", "none"), by="model", extra=("src/api/schema.ts",))
    found = [a async for a in try_patterns(action, INDEX)]
    rest = [a async for a in try_patterns(action, INDEX, after=found[-1])]
    assert [(a.by, a.pattern) for a in rest if a.outcome != "looking"] == [
        ("model", "none"),
        ("program", "src/api/schema.ts"),
    ]


async def test_case_is_the_file_systems() -> None:
    folded = Index(INDEX.paths, ignore_case=True)
    assert await ended("Schema.TS", index=folded) == [("Schema.TS", "hit", 1)]


async def test_a_pattern_ends_at_its_time() -> None:
    slow = Index(f"d/{number:06}" for number in range(50_000))
    found = await attempts("**/*x*", "d/000001", index=slow, limits=ChainLimits(pattern_timeout=-1.0))
    assert [a.outcome for a in found] == ["looking", "timeout", "looking", "hit"]
    assert "limit for one pattern" in found[1].why


async def test_nothing_to_look_in() -> None:
    assert await ended("a.py", "**", index=Index()) == [("a.py", "miss", 0), ("**", "miss", 0)]


async def test_the_loop_goes_on_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def slow(*_: object) -> Matches:
        assert released.wait(20), "the loop stood still while the scan ran"
        return Matches((), 0)

    monkeypatch.setattr(Index, "match", slow)
    waiting = asyncio.create_task(attempts("**/x"))
    asyncio.get_running_loop().call_soon(released.set)
    assert [a.outcome for a in await waiting] == ["looking", "miss"]

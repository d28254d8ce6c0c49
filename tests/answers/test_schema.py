"""The shipped schemas: one shape for the request, the functions and the check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.shapes import PLANNING, RESPONSE, SHIPPED, TOOLS

from tui_agent.answers import schema
from tui_agent.answers.reply_builder import KEYS
from tui_agent.tools.tool import Dialect, functions, prompt_sections, reply_schema

CONFIG = Path(__file__).parents[2] / "config"
CHANGE = RESPONSE["properties"]["fileChanges"]["items"]


def test_only_the_summary_is_required() -> None:
    assert RESPONSE["required"] == ["summary"]
    assert schema.check(RESPONSE, {"summary": "Done."}) == []


def test_the_example_of_the_system_prompt_fits_the_schema() -> None:
    how = prompt_sections(TOOLS, "structured")[0]
    example = next(line for line in how.split("\n") if line.startswith("{"))
    assert schema.check(RESPONSE, json.loads(example)) == []


def test_the_examples_of_the_planning_prompt_fit_the_schema() -> None:
    text = "\n".join(
        part["text"] for part in json.loads((CONFIG / "planning-prompt.json").read_text())["sections"]
    )
    examples = [
        line.split(": ", 1)[1] for line in text.split("\n") if line.startswith(("A file: ", "A folder's"))
    ]
    assert len(examples) == 2
    for example in examples:
        assert schema.check(PLANNING, {"actions": [json.loads(example)]}) == []


def test_faults_name_the_path_of_what_is_wrong() -> None:
    wrong = {"path": "a.py", "edits": [{"search": "a", "replace": "b"}, {"search": 1, "replace": ""}]}
    assert schema.check(CHANGE, wrong, "fileChanges[2]") == [
        'fileChanges[2].edits[1].search: 1 is not of type "string".'
    ]


def test_a_fault_does_not_quote_a_whole_file() -> None:
    [fault] = schema.check(CHANGE, {"path": "a", "delete": "x" * 100_000}, "fileChanges[0]")
    assert len(fault) < 300


def test_strict_requires_everything_and_lets_what_is_optional_be_null() -> None:
    strict = schema.strict(RESPONSE)
    assert set(strict["required"]) == set(strict["properties"])
    assert strict["additionalProperties"] is False
    assert strict["properties"]["summary"]["type"] == "string"
    item = strict["properties"]["fileRequests"]["items"]
    assert item["properties"]["fallbackAction"]["type"] == ["string", "null"]
    assert None in item["properties"]["fallbackAction"]["enum"]
    assert "minLength" not in json.dumps(strict)


def test_what_carries_changes_and_commands_allows_no_other_properties_and_remarks_refuse_no_entry() -> None:
    called = {one["function"]["name"]: one["function"]["parameters"] for one in functions(TOOLS)}
    changes = called["propose_changes"]
    entry = changes["properties"]["changes"]["items"]
    edit = entry["properties"]["edits"]["items"]
    files = (
        SHIPPED,
        PLANNING,
    )
    for closed in (changes, entry, edit, called["run_command"], *files):
        assert closed["additionalProperties"] is False
    assert "additionalProperties" not in called["read_files"]
    assert schema.check(entry, {"path": "a.py", "content": "a", "explanation": "why"}) == []


def test_the_reader_knows_the_keys_of_the_schema() -> None:
    assert set(RESPONSE["properties"]) >= set(KEYS)


def test_strict_takes_a_reply_with_every_property_null() -> None:
    reply = dict.fromkeys(RESPONSE["properties"]) | {"summary": "Done."}
    assert schema.check(schema.strict(RESPONSE), reply) == []


def test_the_functions_carry_the_shapes_of_the_reply() -> None:
    parameters = {tool["function"]["name"]: tool["function"]["parameters"] for tool in functions(TOOLS)}
    assert {name: list(part["properties"]) for name, part in parameters.items()}.items() >= {
        "read_files": ["actions"],
        "list_directory": ["requests"],
        "search_text": ["pattern", "glob", "regex"],
        "propose_changes": ["changes"],
        "set_todos": ["todos"],
        "spawn_subtasks": ["subTasks"],
        "suggest_next": ["steps"],
    }.items()
    assert parameters["propose_changes"]["properties"]["changes"]["items"] == CHANGE


@pytest.mark.parametrize("dialect", ["structured", "tools"])
def test_prompt_and_functions_stay_small(dialect: Dialect) -> None:
    sections = json.loads((CONFIG / "system-prompt.json").read_text())["sections"]
    words = [part["text"] for part in sections if part.get("dialect", dialect) == dialect]
    tools = [tool for tool in TOOLS if tool.name != "fetch_page"]  # off by default
    response = reply_schema(SHIPPED, tools)
    text = "\n\n".join([*words, *prompt_sections(tools, dialect)])
    told = json.dumps(functions(tools)) if dialect == "tools" else json.dumps(response)
    assert (len(text) + len(told)) / 4 < 2500


def test_sections_have_a_text_and_one_id_each_per_dialect() -> None:
    for name in ("system-prompt.json", "planning-prompt.json"):
        sections = json.loads((CONFIG / name).read_text())["sections"]
        keys = [(part["id"], part.get("dialect", "")) for part in sections]
        assert len(set(keys)) == len(keys)
        assert all(part["text"].strip() for part in sections)

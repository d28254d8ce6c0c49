"""A change is proved before it is applied: on a real Python and a real Node project, with a provider on loopback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.openai_wire import Answer
from support.program import json_lines, of_type, run
from support.provider import Provider
from support.repositories import git, repository
from support.sessions import open_session, reply

from tui_agent.checks.detection import found_in
from tui_agent.settings.schema import CheckCommand

PYTHON = {
    "shop/__init__.py": "",
    "shop/price.py": "def total(prices):\n    return sum(prices)\n",
    "tests/test_price.py": (
        "import pytest\n\nfrom shop.price import total\n\n\n"
        "@pytest.mark.parametrize('prices', [[], [1], [1, 2]])\n"
        "def test_total(prices):\n    assert total(prices) == sum(prices)\n"
    ),
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
}
NODE = {
    "price.js": "exports.total = (prices) => prices.reduce((a, b) => a + b, 0);\n",
    "test/price.test.js": (
        "const test = require('node:test');\nconst assert = require('node:assert');\n"
        "const { total } = require('../price.js');\n"
        "for (const prices of [[], [1], [1, 2]]) {\n"
        "  test(`total of ${prices}`, () => assert.equal(total(prices), prices.length && eval(prices.join('+'))));\n"
        "}\n"
    ),
    "package.json": '{"name": "shop", "version": "1.0.0", "scripts": {"test": "node --test test/"}}\n',
}
#: Files, the changed one, its line, what takes its place at first and when it is put right, and where the test fails.
PROJECTS = {
    "python": (
        PYTHON, "shop/price.py", "    return sum(prices)",
        "    return prices[0] + sum(prices[1:])", "    return 0 + sum(prices)", "shop/price.py:2",
    ),
    "node": (
        NODE, "price.js", "prices.reduce((a, b) => a + b, 0)",
        "prices.reduce((a, b) => a + b)", "prices.reduce((a, b) => b + a, 0)", "price.js:1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PROJECTS)
def test_a_broken_test_is_found_and_put_right_before_anything_is_written(tmp_path: Path, kind: str) -> None:
    files, path, old, wrong, right, place = PROJECTS[kind]
    work = repository(tmp_path / "work", files)
    (check,) = found_in(work)
    seen: list[str] = []

    def reply(new: str) -> Any:
        def answer(request: Any) -> Answer:
            seen.append((work / path).read_text())
            change = {"path": path, "edits": [{"search": old, "replace": new}]}
            return Answer(json.dumps({"summary": "Changed.", "fileChanges": [change]}))

        return answer

    with Provider() as provider:
        provider.answer(reply(wrong), reply(right))
        done = run(
            "run", "--json", "--apply", "checked", "--model", "openai/test-model", "--protocol", "structured",
            "--set", f"checks.commands={msgspec.json.encode([check]).decode()}", "--set", "planner_model=none",
            f"Write the total in {path} differently", folder=work, environment=provider.environment,
        )  # fmt: skip
        told = str(provider.requests[1].body["messages"][-1]["content"])
    lines = json_lines(done)
    assert done.returncode == 0, done.stderr + done.stdout
    found = [(line["state"], line["passed"], line["failed"]) for line in of_type(lines, "check")]
    assert found == [("failed", 2, 1), ("passed", 3, 0)]
    assert f"## CHECK {check.name}" in told
    assert place in told
    assert seen == [files[path]] * 2  # nothing was written while the model was asked
    assert right in (work / path).read_text()
    assert git(work, "status", "--porcelain") == f" M {path}\n"
    outside = subprocess.run(check.command, shell=True, cwd=work, check=False, capture_output=True, text=True)
    assert outside.returncode == 0, outside.stdout


OLD_RED = {
    **PYTHON,
    "tests/test_old.py": "def test_old():\n    assert 1 == 2\n",
}


def checked(
    tmp_path: Path, files: dict[str, str], *replies: dict[str, Any], runs: int = 1
) -> tuple[Any, list[Any], Path]:
    """A run with `--apply checked` on a project with pytest: its end, the requests after the first, the folder."""
    work = repository(tmp_path / "work", files)
    (check,) = found_in(work)
    with Provider() as provider:
        provider.answer(
            *(Answer(json.dumps({"summary": "Changed.", "fileChanges": [one]})) for one in replies)
        )
        for _ in range(runs):
            done = run(
                "run", "--json", "--apply", "checked", "--model", "openai/test-model", "--protocol", "structured",
                "--set", f"checks.commands={msgspec.json.encode([check]).decode()}", "--set", "planner_model=none",
                "Write the total in shop/price.py differently", folder=work, environment=provider.environment,
            )  # fmt: skip
        told = [str(request.body["messages"][-1]["content"]) for request in provider.requests[1:]]
    return done, told, work


def total(new: str) -> dict[str, Any]:
    return {"path": "shop/price.py", "edits": [{"search": "    return sum(prices)", "replace": new}]}


def test_a_right_change_passes_beside_a_test_that_failed_before(tmp_path: Path) -> None:
    done, told, work = checked(tmp_path, OLD_RED, total("    return 0 + sum(prices)"))
    (line,) = of_type(json_lines(done), "check")
    assert (line["state"], line["passed"], line["failed"], line["new"], line["old"]) == ("passed", 3, 1, 0, 1)
    assert (done.returncode, told) == (0, [])
    assert "0 + sum" in (work / "shop/price.py").read_text()


def test_the_model_is_told_of_new_failures_and_old_ones_only_by_name(tmp_path: Path) -> None:
    wrong, right = total("    return prices[0] + sum(prices[1:])"), total("    return 0 + sum(prices)")
    done, told, work = checked(tmp_path, OLD_RED, wrong, right)
    found = [(line["state"], line["new"], line["old"]) for line in of_type(json_lines(done), "check")]
    assert found == [("failed", 1, 1), ("passed", 0, 1)]
    assert "1 new failure\nNew: tests/test_price.py::test_total[prices0]" in told[0]
    assert "Failed before your changes too, not to be repaired: tests/test_old.py::test_old" in told[0]
    assert "assert 1 == 2" not in told[0]  # the output is that of the new failure alone
    assert "0 + sum" in (work / "shop/price.py").read_text()


def test_a_test_that_fails_only_once_does_not_block(tmp_path: Path) -> None:
    moody = "import sys\n\n\ndef test_moody():\n    assert any('::' in word for word in sys.argv)\n"
    done, told, work = checked(tmp_path, PYTHON, {"path": "tests/test_moody.py", "content": moody})
    (line,) = of_type(json_lines(done), "check")
    assert (line["state"], line["failed"], line["new"], line["old"]) == ("passed", 1, 0, 0)
    assert told == []
    assert (work / "tests/test_moody.py").exists()


LINT = {**PYTHON, "Makefile": "lint:\n\tno-such-linter shop\n", "ok.sh": "exit 0\n"}


def linted(tmp_path: Path, reply: dict[str, Any], *checks: CheckCommand) -> tuple[Any, list[Any], Path]:
    work = repository(tmp_path / "work", LINT)
    with Provider() as provider:
        provider.answer(Answer(json.dumps({"summary": "Changed.", "fileChanges": [reply]})))
        done = run(
            "run", "--json", "--apply", "checked", "--model", "openai/test-model", "--protocol", "structured",
            "--set", f"checks.commands={msgspec.json.encode(checks).decode()}", "--set", "planner_model=none",
            "Write the total in shop/price.py and the Makefile differently", folder=work,
            environment=provider.environment,
        )  # fmt: skip
        return done, provider.requests[1:], work


def test_a_check_whose_program_this_machine_lacks_neither_blocks_nor_proves(tmp_path: Path) -> None:
    lint, quick = CheckCommand("lint", "make lint"), CheckCommand("quick", "sh ok.sh")
    done, told, work = linted(tmp_path / "beside", total("    return 0 + sum(prices)"), lint, quick)
    found = [(line["name"], line["state"], line["missing"]) for line in of_type(json_lines(done), "check")]
    assert found == [("lint", "stopped", True), ("quick", "passed", False)], "the states of the contract"
    assert (done.returncode, told) == (0, [])
    assert "0 + sum" in (work / "shop/price.py").read_text()
    done, told, work = linted(tmp_path / "alone", total("    return 0 + sum(prices)"), lint)
    assert (done.returncode, told) == (1, [])
    assert "lint: program missing" in of_type(json_lines(done), "finished")[0]["error"]
    assert "0 + sum" not in (work / "shop/price.py").read_text()


def test_a_change_that_asks_for_another_missing_program_is_not_written(tmp_path: Path) -> None:
    other = {"path": "Makefile", "edits": [{"search": "no-such-linter", "replace": "no-other-linter"}]}
    checks = CheckCommand("lint", "make lint"), CheckCommand("quick", "sh ok.sh")
    done, told, work = linted(tmp_path, other, *checks)
    assert [line["state"] for line in of_type(json_lines(done), "check")] == ["failed", "passed"]
    assert (done.returncode, told) == (1, [])
    assert "no-such-linter" in (work / "Makefile").read_text()


def test_what_was_applied_is_what_the_next_proposal_is_compared_with(tmp_path: Path) -> None:
    """The second run finds the old failure in what the first has kept: its check runs twice, without a baseline."""
    done, _, work = checked(
        tmp_path, OLD_RED, total("    return 0 + sum(prices)"),
        {"path": "shop/more.py", "content": "MORE = 1\n"}, runs=2,
    )  # fmt: skip
    (line,) = of_type(json_lines(done), "check")
    assert (line["state"], line["new"], line["old"]) == ("passed", 0, 1)
    assert (work / "shop/more.py").exists()
    assert len(of_type(json_lines(done), "command")) == 1


def test_what_no_check_is_about_is_written_without_a_run(tmp_path: Path) -> None:
    done, told, work = checked(tmp_path, PYTHON, {"path": "README.md", "content": "# Shop\n"})
    lines = json_lines(done)
    assert (done.returncode, told, of_type(lines, "check"), of_type(lines, "command")) == (0, [], [], [])
    assert (work / "README.md").read_text() == "# Shop\n"


async def test_the_places_of_a_result_are_those_of_new_failures(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", OLD_RED)
    checks = msgspec.json.encode(found_in(work)).decode()
    wrong = reply("It.", fileChanges=[total("    return prices[0] + sum(prices[1:])")])
    overrides = (f"checks.commands={checks}", "checks.repairs=0")
    async with open_session(work, [wrong], overrides=overrides) as session:
        await session.chat.submit("Write the total in shop/price.py differently")
        await session.chat.finished()
        (result,) = session.state.checks.results
        assert (result.new, result.old) == (1, 1)
        assert {place.path for place in result.places} == {"shop/price.py", "tests/test_price.py"}

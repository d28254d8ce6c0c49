"""Skills of the person and of a workspace, their front matter, and hostile ones."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
from pathlib import Path

import pytest

from tui_agent.errors import LooksSecret, PathRefused
from tui_agent.extensions.files import Unusable, parse, places
from tui_agent.extensions.markdown_files import expanded, read_skills, skill_body, skill_file, skill_lines
from tui_agent.extensions.names import model_of, narrowing
from tui_agent.extensions.trusted import TrustedFiles, brought, standing
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def skill(folder: Path, text: str = "", **files: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        text or f"---\nname: {folder.name}\ndescription: Of {folder.name}\n---\nBody\n"
    )
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


def found(work: Path):
    folders = user_folders()
    trusted = TrustedFiles(work, folders)
    return *read_skills(places("skills", folders, work), trusted), trusted


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ("description: Use it when: a [b] c", {"description": "Use it when: a [b] c"}),
        ("a: \"x: \\\"y\\\"\"\nb: 'it''s'", {"a": 'x: "y"', "b": "it's"}),
        (
            "tools: [Read, 'Bash(git add:*)']\nmore:\n- a\n- b",
            {"tools": ("Read", "Bash(git add:*)"), "more": ("a", "b")},
        ),
        ("a: |\n  one\n   two\n\n  three\nb: >-\n  x\n  y", {"a": "one\n two\n\nthree", "b": "x y"}),
        (
            "a: one\n  two # no\n# no\nargument-hint: [file] [more]",
            {"a": "one two", "argument-hint": "[file] [more]"},
        ),
    ],
)
def test_front_matter_is_read_as_people_write_it(written: str, fields: dict) -> None:
    assert parse(f"---\n{written}\n---\nBody\n").fields == fields


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("a: 1\nno key", 3),
        ('a: "open', 2),
        ("a: 1\na: 2", 3),
        ("a:\n\t- x", 3),
        ("a: [x", 2),
        ('a: "x" y', 2),
    ],
)
def test_broken_front_matter_names_its_line(written: str, line: int) -> None:
    with pytest.raises(Unusable) as raised:
        parse(f"---\n{written}\n---\n")
    assert raised.value.line == line


def test_no_text_of_a_file_has_control_characters() -> None:
    """Escape sequences, bidi controls and tags, which write words that nobody sees."""
    hidden = "\x1b[31m\u202e\U000e0041\x85\u2028\x00"
    found = parse(f"---\r\ndescription: Reads{hidden} 👩‍💻 tables\r\n---\r\nDo it{hidden}\tnow.\r\n")
    whole = found.text("description") + found.body
    assert not set(hidden) - set("[31m") & set(whole) and "👩‍💻 tables" in whole and "\tnow." in whole


def test_a_skill_of_the_person_is_found_and_read(tmp_path: Path, own: Path) -> None:
    folder = skill(own / ".agents/skills/pdf", **{"form.md": "Fill"})
    skills, problems, withheld, trusted = found(tmp_path)
    assert [(one.key, one.description) for one in skills] == [("pdf", "Of pdf")] and not problems + withheld
    assert skill_body(skills[0], trusted).startswith("Body\n\nFiles of this skill, in ")
    assert skill_body(skills[0], trusted).endswith(f"in {folder}, where commands can read them: form.md")
    assert skill_file(skills[0], "form.md", trusted) == "Fill"


PUBLISHED = """---
name: Quality & Release Checks
description: >-
  Publish a release. Use when: the user
  asks for one.
license: Complete terms in LICENSE.txt
allowed-tools: Bash(git:*), Read
metadata:
  author: someone
  version: "1.0"
disable-model-invocation: true
argument-hint: "<version>"
arguments: [version]
---
Body of ${CLAUDE_SKILL_DIR}.
"""


def test_a_published_skill_is_read_with_its_fields(tmp_path: Path, own: Path) -> None:
    """A cloned repository of skills, with a title as a name and many files that are not the skill's."""
    clone = own / ".claude/skills/clone"
    objects = clone / ".git/objects"
    objects.mkdir(parents=True)
    for number in range(5_100):
        (objects / str(number)).touch()
    folder = skill(clone / "release", PUBLISHED, **{"steps.md": "x"})
    (folder / "node_modules").mkdir()
    (folder / "node_modules/index.js").touch()
    (one,), problems, _, trusted = found(tmp_path)
    assert not problems and one.key == "release" and one.hidden and one.arguments == ("version",)
    assert (
        one.description == "Publish a release. Use when: the user asks for one." and one.hint == "<version>"
    )
    text = skill_body(one, trusted)
    assert text.startswith(f"Body of {folder}.\n") and text.endswith(": steps.md")


def test_a_workspace_counts_only_as_it_was_trusted(tmp_path: Path, own: Path) -> None:
    work = tmp_path / "work"
    folder = skill(work / ".claude/skills/deploy", **{"run.sh": "true"})
    skill(own / ".claude/skills/deploy")
    assert standing(work, user_folders()) == "not trusted"
    assert [one.key for one in found(work)[0]] == ["deploy"] and found(work)[2] == [folder / "SKILL.md"]
    trust.trust(work, user_folders(), brought(work, user_folders()))
    skills, _, withheld, trusted = found(work)
    assert [one.key for one in skills] == ["deploy", "project:deploy"] and not withheld
    assert standing(work, user_folders()) == "trusted"
    (folder / "run.sh").write_text("false")
    assert standing(work, user_folders()) == "changed"
    assert [one.key for one in found(work)[0]] == ["deploy"]
    with pytest.raises(PathRefused, match="has changed since"):
        skill_file(skills[1], "run.sh", trusted)


def test_hostile_skills_are_left_out_with_a_reason(tmp_path: Path, own: Path) -> None:
    at = own / ".agents/skills"
    (tmp_path / "outside.md").write_text("---\nname: x\ndescription: y\n---\n")
    skill(at / "large", "x" * 10_000_000)
    (at / "linked").mkdir()
    (at / "linked/SKILL.md").symlink_to(tmp_path / "outside.md")
    skill(at / "broken", "---\nname: broken\n")
    skill(at / "named", "---\nname: a/../b\ndescription: d\n---\n")
    good = skill(at / "read_files", **{".env": "KEY=1"})
    (good / "out").symlink_to(tmp_path / "outside.md")
    for name in ("first", "second"):  # Links that lead back to themselves, beside the skills.
        (at / name).symlink_to(at / ("second" if name == "first" else "first"))
    skills, problems, _, trusted = found(tmp_path)
    assert [one.key for one in skills] == ["read_files"]
    said = "\n".join(map(str, problems))
    assert "10,000,000 bytes" in said and "leads out" in said and "broken/SKILL.md, line 1" in said
    assert "is not a name" in said and len(problems) == 4
    for path, error in ((".env", LooksSecret), ("out", PathRefused), ("../large/SKILL.md", PathRefused)):
        with pytest.raises(error):
            skill_file(skills[0], path, trusted)


def test_the_list_keeps_its_budget() -> None:
    few = skill_lines([(f"s{at}", "d" * 80) for at in range(50)], 200)
    assert len(few.lines) < 10 and few.short and sum(map(len, few.lines + few.short)) < 800
    assert len(few.lines) + len(few.short) + len(few.left_out) == 50


def test_names_of_other_agents_have_counterparts() -> None:
    found = narrowing(["Read", "Bash(git add:*)", "Bash(git commit:*)", "mcp__x__y", "WebSearch"])
    assert found.tools == {"read_files": (), "run_command": ("git add*", "git commit*"), "x__y": ()}
    assert found.left_out == ("WebSearch",)
    models = ["openai/gpt-5", "anthropic/claude-sonnet-4-5"]
    assert [model_of(name, models) for name in ("inherit", "sonnet", "gpt-5", "opus", "x/y")] == [
        *("", "anthropic/claude-sonnet-4-5", "openai/gpt-5", None, None)
    ]


@pytest.mark.parametrize(("length", "first"), [(9, "b c"), (10_000, "'b")])
async def test_long_arguments_are_split_at_spaces(length: int, first: str) -> None:
    assert await expanded("$1", f"'b c' {'x' * length}") == first


@pytest.mark.parametrize(
    "written",
    [
        "printf %s $1",
        'printf %s "$1"',
        "printf %s '$1'",
        'printf %s "$(printf %s "$1")"',
        'printf %s "a\\" $1" | cut -c 4-',
        "(printf %s $1)",
        "printf %s \"'$1'\" | tr -d \\'",
    ],
)
async def test_an_argument_is_one_word_whatever_quotes_are_around_it(written: str) -> None:
    argument = 'a $(echo bad) "b" \\ $HOME `id`'

    def output(command: str) -> str:
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout

    async def run(command: str) -> str:
        return await asyncio.to_thread(output, command)

    text = f"!`{written}`"
    found = await expanded(text, shlex.quote(argument), (), run)
    assert found.removesuffix(f"\n\n{shlex.quote(argument)}") == argument


async def test_an_argument_with_a_name_is_inserted_by_it() -> None:
    found = await expanded("Review $FILES for $HOME and $WHO.", 'FILES="a b.py" WHO=me')
    assert found == "Review a b.py for $HOME and me."


async def test_single_quotes_keep_a_field_of_awk_without_an_argument() -> None:
    commands = []

    async def run(command: str) -> str:
        commands.append(command)
        return ""

    await expanded("!`awk '{print $1}'` !`echo '$ARGUMENTS' $2`", "", (), run)
    assert commands == ["awk '{print $1}'", "echo '$ARGUMENTS' ''"]

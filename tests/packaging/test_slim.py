"""The slim installation: the packages of `requirements-slim.lock`, without litellm and what only litellm needs."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest
from PIL import Image
from support.provider import Provider

from tui_agent.errors import install_command

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements-slim.lock").read_text()
NAMES = [match.group(1) for line in LOCK.splitlines() if (match := re.match(r"([a-z0-9._-]+)==", line))]


@pytest.fixture(scope="module")
def slim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with links to the installed packages of the slim lock, and nothing else."""
    environment = tmp_path_factory.mktemp("slim")
    venv.create(environment, symlinks=True)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    for name in (*NAMES, "tui-agent"):
        try:
            there = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another system or Python
        tops = {file.parts[0] for file in there.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            link = packages / top
            if not link.exists():
                link.symlink_to(str(there.locate_file(top)))
    (packages / "checkout.pth").write_text(f"{ROOT}\n")
    return environment / "bin" / "python"


def run(python: Path, folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(python), "-m", "tui_agent", *words],
        cwd=folder,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_the_lock_has_hashes_no_address_and_neither_litellm_nor_what_only_it_needs():
    assert not {"litellm", "openai", "tokenizers", "huggingface-hub", "aiohttp", "pydantic", "pillow"} & set(
        NAMES
    )
    blocks = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) > 40 and all("--hash=sha256:" in block for block in blocks) and "://" not in LOCK
    full = (ROOT / "requirements.lock").read_text()
    assert [line for line in LOCK.splitlines() if re.match("[a-z0-9]", line) and line not in full] == []


def test_doctor_names_the_packages_that_are_missing(slim: Path, tmp_path: Path) -> None:
    done = run(slim, tmp_path, "doctor")
    assert "note     litellm is not installed; it is needed for providers without built-in" in done.stdout
    assert re.search(
        r"note     pillow is not installed; .* in messages: .*pip.* install .*pillow", done.stdout
    )
    assert "problem" not in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("pip", "uv", "command"),
    [
        (True, "", "'/my env/bin/python' -m pip install 'tui-agent[acp]'"),
        (False, "/bin/uv", "uv pip install --python '/my env/bin/python' 'tui-agent[acp]'"),
        (False, "", "pip --python '/my env/bin/python' install 'tui-agent[acp]'"),
    ],
)
def test_a_command_installs_into_the_environment_of_the_program(
    pip: bool, uv: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/my env/bin/python")
    monkeypatch.setattr("tui_agent.errors.find_spec", lambda name: name if pip else None)
    monkeypatch.setattr(shutil, "which", lambda name: uv)
    assert install_command("tui-agent[acp]") == command


def test_a_direct_provider_answers_and_another_is_refused_with_the_command(
    slim: Path, tmp_path: Path
) -> None:
    with Provider() as provider:
        provider.answer("Hello from afar.")
        done = run(slim, tmp_path, "run", "--model", "openai/gpt-6-sol", "Say hello.", **provider.environment)
        assert done.returncode == 0 and "Hello from afar." in done.stdout, done.stderr
        done = run(slim, tmp_path, "run", "--model", "watsonx/some", "Say hello.", **provider.environment)
        assert done.returncode != 0
        said = re.escape("watsonx/some is reached through litellm, which is not installed: install it with `")
        assert re.search(rf"{said}.*pip.* install .*litellm<2'`", done.stderr.replace("\n", " ")), done.stderr


def test_a_picture_is_refused_with_the_command(slim: Path, tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "PNG")
    (tmp_path / "a.png").write_bytes(picture.getvalue())
    with Provider() as provider:
        done = run(
            slim, tmp_path, "run", "--model", "openai/gpt-6-sol", "See @a.png.", **provider.environment
        )
        assert provider.requests == [] and "without Pillow, which is not installed" in done.stderr, (
            done.stderr
        )


def test_a_text_without_a_grammar_is_shown_without_colours(slim: Path, tmp_path: Path) -> None:
    script = "from tui_agent.ui.widgets.syntax import query_of; print(query_of('sql'), query_of('python') is not None)"
    done = subprocess.run(
        [str(slim), "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "None True\n", done.stderr

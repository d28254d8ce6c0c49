"""What is built and installed: everything the program needs is inside, and runs from anywhere."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tui_agent import __version__

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and a source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    return folder


@pytest.fixture(scope="module")
def program(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tui-agent`, installed from the wheel into an environment of its own, in a folder with a space."""
    environment = tmp_path_factory.mktemp("an environment")
    (wheel,) = built.glob("*.whl")
    pip = importlib.util.find_spec("pip") is not None
    venv.create(environment, with_pip=not (pip or shutil.which("uv")), symlinks=True)
    python = str(environment / "bin" / "python")
    if pip:
        install = [sys.executable, "-m", "pip", "--python", python, "install"]
    elif uv := shutil.which("uv"):
        install = [uv, "pip", "install", "--python", python]
    else:
        install = [python, "-m", "pip", "install"]
    subprocess.run([*install, "--quiet", "--no-deps", "--no-index", str(wheel)], check=True, timeout=100)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "tui-agent"


def run(program: Path, folder: Path, *words: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(program), *words]
    done = subprocess.run(
        command, cwd=folder, env=clean, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


def carried(folder: Path) -> set[str]:
    """The files below a folder, as paths below the top of the repository, but for what Python leaves behind."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files if path.name != ".keep"}


def test_the_wheel_holds_every_file_of_the_package_and_what_ships(built):
    (wheel,) = built.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert carried(ROOT / "tui_agent") <= inside
    assert {f"tui_agent/{path}" for path in carried(ROOT / "config") | carried(ROOT / "themes")} <= inside


def test_the_source_distribution_holds_what_a_wheel_is_built_from(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    needed = carried(ROOT / "tui_agent") | carried(ROOT / "config") | carried(ROOT / "themes")
    assert needed | {"pyproject.toml", "README.md"} <= inside


def test_an_installed_program_runs_from_another_folder(program, tmp_path):
    assert run(program, tmp_path, "--version") == f"tui-agent {__version__}\n"
    assert "Usage: tui-agent" in run(program, tmp_path, "--help")


def test_an_installed_program_finds_what_ships_with_it(program, tmp_path):
    said = run(program, tmp_path, "config", "path")
    places = [Path(line.partition("/")[1] + line.partition("/")[2]) for line in said.splitlines()[:2]]
    for place in places:
        assert place.is_relative_to(program.parent.parent.resolve())
        assert place.is_dir()
    assert (places[0] / "settings.toml").is_file()
    assert run(program, tmp_path, "config", "check") == "The configuration is in order.\n"

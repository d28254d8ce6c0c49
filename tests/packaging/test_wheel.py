"""What is built and installed: everything the program needs is inside, and runs from anywhere."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
import zipfile
from pathlib import Path

import pytest
from support.terminal_program import PATIENCE, Program, running

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


def test_the_wheel_is_small_and_has_no_file_that_runs_at_each_start_of_python(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.stat().st_size <= 1_700_000
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".pth", "sitecustomize.py", "usercustomize.py"))]
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]


def test_the_source_distribution_has_all_that_the_checks_and_tests_need(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    needed = carried(ROOT / "tests") | carried(ROOT / "docs") | carried(ROOT / ".ci")
    needed |= {
        "Makefile",
        "mkdocs.yml",
        "requirements.lock",
        "requirements-slim.lock",
        "CONTRIBUTING.md",
        "AGENTS.md",
    }
    assert needed <= inside, needed - inside


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
    assert run(program, tmp_path, "config", "check") == "The configuration is valid.\n"


@pytest.mark.parametrize("named", ["path", "link", "relative link", "search path"])
def test_the_launcher_is_run_without_site_under_every_name(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """uv and pipx install links; this environment's path has a space, for which pip writes a first line for a shell."""
    traced = program.with_name("traced")
    traced.write_text(
        program.read_text().replace(
            "sys.exit(launcher", "print(sys.flags, launcher.__file__, flush=True)\nsys.exit(launcher"
        )
    )
    traced.chmod(0o755)
    link, words = tmp_path / "tui-agent", [str(traced)]
    if named == "link":
        link.symlink_to(traced)
        words = [str(link)]
    elif named == "relative link":
        link.symlink_to(os.path.relpath(traced, tmp_path.resolve()))
        words = ["./tui-agent"]
    elif named == "search path":
        monkeypatch.setenv("PATH", f"{traced.parent}{os.pathsep}{os.environ['PATH']}")
        words = ["sh", "-c", "traced --version"]
    done = subprocess.run([*words, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "isolated=1" in done.stdout and "no_site=1" in done.stdout
    assert (
        str(program.parent) in done.stdout and "/site-packages/tui_agent/control/launcher.py" in done.stdout
    )


def test_a_host_of_an_installed_program_ends_when_a_file_of_it_is_replaced(
    program: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("TUI_AGENT_MODEL", "openai/test-model")
    monkeypatch.setenv("TUI_AGENT_REPLAY_SPEED", "0")
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        monkeypatch.delenv(name)
    python = str(program.with_name("python"))
    words = [python, "-P", "-m", "tui_agent.start", "600", " " * 200]
    host = subprocess.Popen(words, cwd="/", stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + PATIENCE
        while not [path for path in tmp_path.glob("*/host-*") if path.suffix != ".lock"]:
            assert time.monotonic() < deadline and host.poll() is None
            time.sleep(0.05)
        (file,) = (program.parent.parent / "lib").glob("python*/site-packages/tui_agent/errors.py")
        text = file.read_bytes()
        file.unlink()
        file.write_bytes(text)
        with running(Program(".", folder=tmp_path, home=home, command=(str(program),)), sign="Chat"):
            assert host.wait(PATIENCE) == 0
    finally:
        host.kill()
        host.wait()

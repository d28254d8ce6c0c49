"""How the benchmarks start things: tui-agent itself and the bare app, each with a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BARE = [sys.executable, str(HERE / "bare_app.py")]
TUI_AGENT = [sys.executable, "-m", "tui_agent"]
#: The installed program, whose launcher asks a host.
INSTALLED = [str(Path(sys.executable).parent / "tui-agent")]
#: A letter that is drawn nowhere else, and where it counts: in the input, not where early keys are kept meanwhile.
KEY = "Ω"
ECHO = rf"(?<!opening …  ){KEY}"
#: Drawn with the first frame of each.
BARE_MARK, OUR_MARK = "nothing typed yet", "Chat"
#: Names the folder of what the benchmarks of one run share.
SHARED = "TUI_AGENT_BENCH_SHARED"
#: Nobody listens there; a benchmark that wants an answer starts a server and gives its address.
NOWHERE = "http://127.0.0.1:9/v1"


@contextmanager
def home(api_base: str = NOWHERE) -> Generator[dict[str, str]]:
    """Variables for a program that keeps its files in a temporary folder and reaches no model but `api_base`."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    with TemporaryDirectory(prefix="tui-agent-bench-home-", ignore_cleanup_errors=True) as folder:
        yield kept | {
            "TUI_AGENT_HOME": folder,
            "TUI_AGENT_MODEL": "openai/bench",
            "TUI_AGENT_PLANNER_MODEL": "none",
            "OPENAI_API_KEY": "sk-bench",
            "OPENAI_API_BASE": api_base,
            "OPENAI_BASE_URL": api_base,
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "",  # as installed: what was imported once is not compiled again
        }


@contextmanager
def small_workspace() -> Generator[Path]:
    """The sample project of the rehearsal, in a temporary folder."""
    from tui_agent.rehearsal import copy_project

    with TemporaryDirectory(prefix="tui-agent-bench-", ignore_cleanup_errors=True) as folder:
        yield copy_project(Path(folder) / "shop")


@contextmanager
def big_workspace(files: int = 100_000, ignored: int = 50_000) -> Generator[Path]:
    """A git repository with that many empty files in folders of fifty, and as many more that it ignores.

    In a run of several benchmarks it is made once; none of them may change it.
    """
    with TemporaryDirectory(prefix="tui-agent-bench-", ignore_cleanup_errors=True) as folder:
        root = Path(os.environ.get(SHARED, folder)) / f"monorepo-{files}-{ignored}"
        if not root.exists():
            _build(root, files, ignored)
        yield root


def _build(root: Path, files: int, ignored: int) -> None:
    _fill(root, "packages", files)
    _fill(root, "ignored", ignored)
    (root / ".gitignore").write_text("ignored/\n")
    (root / "api.py").write_text("def fetch(url):\n    return get(url)\n")
    author = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0")
    for step in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "all"]):
        subprocess.run(["git", *step], cwd=root, check=True, capture_output=True)


def _fill(root: Path, name: str, files: int) -> None:
    for number in range(files // 50):
        folder = root / name / f"part{number % 40:02}" / f"module{number:04}"
        folder.mkdir(parents=True)
        for file in range(50):
            os.close(os.open(folder / f"source_{number:04}_{file:02}.py", os.O_CREAT | os.O_WRONLY))

"""What every test stands on: the support modules on the path, and a home of its own."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from support import nursery

#: What takes longest comes first, so that no worker is busy with it when the others have nothing left to do.
LONGEST = (
    *("test_recipes", "test_bursts", "test_snapshots", "test_guide", "test_rehearsal", "test_proved_changes"),
    *("test_plain_screen", "test_terminal", "test_start", "test_wire", "test_provider_files"),
)
#: Characters of one value in the name of a test.
_LONGEST_NAME = 60


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem not in LONGEST)


def pytest_make_parametrize_id(val: object) -> str | None:
    """The beginning of a long text: each worker tells the names of all tests, and each report carries one."""
    if not isinstance(val, str | bytes) or len(val) <= _LONGEST_NAME:
        return None
    return f"{val[:_LONGEST_NAME]!r}, of {len(val)}"


def pytest_collection_finish() -> None:
    """What was imported stays, and need not be looked through for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


#: How long an example takes to draw is the machine's matter.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_sessionstart() -> None:
    """Children of this process are copies of one that has imported what they need."""
    nursery.use()


#: Folders whose tests leave no file or folder open, except for the debug log of a session.
CLOSED = ("answers", "context", "edits", "files", "log", "review", "sandbox", "tools")


@pytest.fixture(autouse=True)
def descriptors(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.parent.name not in CLOSED:
        yield
        return
    before = _opened()
    yield
    if _opened().keys() - before:
        gc.collect()
    assert not {number: path for number, path in _opened().items() if number not in before}


def _opened() -> dict[str, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{name}")
            if path.startswith("/") and not path.startswith("/dev/") and not path.endswith("/debug.log"):
                found[name] = path
    return found


TESTERS_HOME = os.path.expanduser("~")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet, one after the other: pytest looks for the next number through all there are."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for settings, sessions and caches that belongs to this test alone; no key, no model."""
    folder = next(homes)
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TUI_AGENT_HOME", str(folder))
    monkeypatch.setenv("CI", "true")  # no program leaves a host behind
    # The tester's own skills and commands are left alone; a test that has a home of its own sets HOME.
    monkeypatch.setattr(
        "tui_agent.extensions.files.home_folder",
        lambda: Path(home) if (home := os.path.expanduser("~")) != TESTERS_HOME else folder,
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # The checks of a project run this Python, without plugins: another may be started by scripts, or have many.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_API_BASE",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    return folder

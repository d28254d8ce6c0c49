"""What this machine offers for trial runs, found out by doing it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from msgspec import Struct

from tui_agent.store.commands import Isolated
from tui_agent.trial.environment import variables
from tui_agent.trial.plan import NoView, Seed, ViewPlan, plan
from tui_agent.trial.run import Run

_WORDS = {
    "overlay": "in namespaces of their own, with a layer that is thrown away",
    "none": "only in the real folder, with !!",
}


class Rung(Struct, frozen=True):
    """The best that works here; `why` says why nothing better does, "" where it is the best there is."""

    isolated: Isolated
    why: str = ""

    def in_words(self) -> str:
        return f"trial runs: {_WORDS[self.isolated]}" + (f" ({self.why})" if self.why else "")


async def probe() -> Rung:
    """Runs a command in a view of a small folder: it has to see what is pending and to write, and not to change it."""
    if not sys.platform.startswith("linux"):
        return Rung("none", f"a view needs Linux, this is {sys.platform}")
    with tempfile.TemporaryDirectory(prefix="tui-agent-probe-") as folder:
        made = _plan(folder)
        chosen, _ = variables(made.workspace, made.home, os.environ)
        try:
            result = await Run(10.0).in_view(
                made, ["/bin/sh", "-c", "cat pending && echo x > written"], chosen
            )
        except NoView as error:
            return Rung("none", str(error))
        except OSError as error:
            return Rung("none", f"it could not be tried: {error.strerror}")
    as_it_should = result.ok and [change.path for change in result.changes] == ["written"]
    return (
        Rung("overlay") if as_it_should else Rung("none", "a view was made, but did not hold what it should")
    )


def _plan(folder: str) -> ViewPlan:
    return plan(Path(os.path.realpath(folder)), seeds=[Seed("pending", "file", b"pending\n")])

"""Power cuts, slow disks and full ones below SQLite and the files: what was acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # `support`, as in the tests

from support import power

from tests.faults import prove_kills as kills
from tests.proofs.sabotage import sabotaged
from tests.proofs.tally import Tally
from tui_agent.files.numbers import whole_number

ROOT = Path(__file__).parents[2]
#: What is done when the power goes, and what the disk is like meanwhile; how often at full scale.
DISKS: dict[str, dict[str, str]] = {
    "power cut": {},
    "power cut, slow disk": {"POWER_DELAY": "150"},
    "power cut, disk full for a while before": {"POWER_FULL_AFTER": "1000000", "POWER_FULL_FOR": "3"},
    "power cut, log locked for a while before": {"POWER_LOCKED_AFTER": "12", "POWER_LOCKED_FOR": "6000"},
}
#: What makes a disk refuse for a while, which is tried with what is typed.
REFUSES = ("POWER_FULL_FOR", "POWER_LOCKED_FOR")
KINDS = ("saving", "applying", "undoing", "typing", "streaming")
EACH = 20
#: Seconds in which a program must have said what it is told for.
PATIENCE = 60.0
#: Seconds after which what is typed counts where the disk had refused it: it is tried again every other second.
AFTER_REFUSAL = 4.0
#: What breaks the promise that these cases try; each is noticed.
SABOTAGES = ("log not synced", "files not synced")


def prove(tally: Tally, scale: float) -> None:
    with tempfile.TemporaryDirectory(prefix="tui-agent-power-") as folder:
        library = power.built(Path(folder))
        if library is None:
            sys.stderr.write("power cuts are left out: there is no C compiler to make the disk with\n")
            return
        for disk, environment in DISKS.items():
            for kind in ("typing",) if environment.keys() & REFUSES else KINDS:
                for number in range(max(1, round(EACH * scale))):
                    what = _case(Path(folder) / f"{disk} {kind} {number}", kind, library, environment, number)
                    tally.case(f"{disk}, while {kind}", not what, what=what)


def _case(folder: Path, kind: str, library: Path, disk: dict[str, str], seed: int) -> str:
    """What is missing after a power cut; "" if nothing is."""
    chance, home, work, shadow = random.Random(seed), folder / "home", folder / "work", folder / "shadow"
    home.mkdir(parents=True)
    os.environ["TUI_AGENT_HOME"] = str(home)
    kills._begin(kind, work)
    power.remember([home, work], shadow)
    environment = {**os.environ, **disk, "LD_PRELOAD": str(library), "POWER_SHADOW": str(shadow)}
    words = [
        sys.executable,
        "-m",
        "tests.faults.prove_power",
        kind,
        str(work),
        os.environ.get("PROOF_SABOTAGE", ""),
    ]
    on_its_way = AFTER_REFUSAL if disk.keys() & REFUSES else kills.WITHIN
    locked = whole_number(disk.get("POWER_LOCKED_FOR", "0"), 0) / 1000
    with subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        late = threading.Timer(PATIENCE, child.kill)  # it does nothing any more
        late.start()
        facts = [json.loads(child.stdout.readline() or "{}")]
        told = chance.randrange(2, 8) if kind not in kills.STEADY else 1
        facts += [json.loads(child.stdout.readline() or "{}") for _ in range(told)]
        # the moment itself is what is tried
        time.sleep(
            chance.random() * 0.1 if kind not in kills.STEADY else locked + on_its_way + chance.random()
        )
        killed_at = time.monotonic()
        child.send_signal(signal.SIGKILL)
        late.cancel()
        rest = child.stdout.read()
    facts += [json.loads(line) for line in rest.splitlines(keepends=True) if line.endswith(b"\n")]
    power.cut_power([home, work], shadow)
    facts = [
        fact
        for fact in facts
        if fact and (fact["at"] <= killed_at - on_its_way or not fact.keys() & kills.ON_ITS_WAY)
    ]
    name = next((fact["session"] for fact in facts if "session" in fact), "")
    try:
        asyncio.run(kills._check(kind, work, name, facts))
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    return ""


def _main(kind: str, work: str, sabotage: str) -> None:
    """Do it until the kill comes, and say on standard output what is acknowledged."""

    def tell(**facts: Any) -> None:
        os.write(1, json.dumps(facts | {"at": time.monotonic()}).encode() + b"\n")

    with sabotaged(sabotage):
        try:
            asyncio.run(kills._work(kind, Path(work), "", tell))
        except Exception as error:
            tell(fault=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    _main(*sys.argv[1:])

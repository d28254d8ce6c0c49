"""The long proofs: `python -m tests.proofs PROOF [NAME] [--scale N] [--part I/N]`; PROOF is one of `DOCUMENTS`.

Each module `tests/<proof>/prove_*.py` has a function `prove(tally, scale)` that counts its cases. `scale` is 1.0 for
the figures that the documents promise; less is a quick look. The table of each module is written into the proof's
document, between its two markers, with the scale it was made at. The exit status is 1 if any case failed.

With the name `sabotage`, each module is tried with each deliberate break in its `SABOTAGES`, which it must notice; the
exit status is 1 if it does not notice one.

Where `prove` takes a part, too, `--part 3/25` tries the third of 25 parts and keeps its figures in `build/proofs`; the
table holds all parts that were run, and their share of the cases.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.proofs.sabotage import sabotaged
from tests.proofs.tally import SHOWN, WHOLE, Part, Tally

ROOT = Path(__file__).parents[2]
#: The name that tries the proofs themselves, and the share of their cases that must be enough to notice a break.
SABOTAGE, SABOTAGED_SCALE = "sabotage", 0.1
NOTES = ROOT / "docs" / "notes"
DOCUMENTS = {
    "attacks": NOTES / "security.md",
    "faults": NOTES / "reliability.md",
    "soak": NOTES / "reliability.md",
    "fuzz": NOTES / "edits.md",
    "local": NOTES / "local-models.md",
    "providers": NOTES / "providers.md",
    "projects": NOTES / "trial-runs.md",
    "mutants": NOTES / "reliability.md",
    "tasks": NOTES / "tasks.md",
}


def main() -> int:
    asked = _arguments()
    names = sorted(path.stem for path in (ROOT / "tests" / asked.proof).glob("prove_*.py"))
    if asked.name == SABOTAGE:
        return _sabotage(asked.proof, names, asked.scale)
    chosen = [name for name in names if asked.name in name]
    total = Tally()
    for name in chosen:
        tally, begun = Tally(), time.monotonic()
        prove = importlib.import_module(f"tests.{asked.proof}.{name}").prove
        if asked.part != WHOLE and "part" not in inspect.signature(prove).parameters:
            print(f"{name} is not run in parts", file=sys.stderr)
            return 2
        seeded = {"seed": asked.seed} if "seed" in inspect.signature(prove).parameters else {}
        prove(tally, asked.scale, *([asked.part] if asked.part != WHOLE else ()), **seeded)
        print(
            f"\n{name}: {tally.tried} cases in {time.monotonic() - begun:.0f} s\n\n{tally.table()}",
            flush=True,
        )
        total.failures += tally.failures
        tally, missing = _with_other_parts(f"{name}-{asked.scale}", asked.part, tally)
        if missing:
            print(f"parts that are still to be run: {missing}")
        made = asked.scale * (1 - len(missing) / asked.part.count)
        share = "" if made == 1.0 else f"Made with {made:.0%} of the cases.\n\n"
        _write(
            DOCUMENTS[asked.proof],
            f"make {asked.proof}: {name.removeprefix('prove_')}",
            share + tally.table(),
        )
    for failure in total.failures[: SHOWN * len(chosen)]:
        print(f"failed: {failure}", file=sys.stderr)
    print(f"\n{len(total.failures)} failed" if total.failures else "\nall held")
    return 1 if total.failures or not chosen else 0


def _sabotage(proof: str, names: Sequence[str], scale: float) -> int:
    """Try each module with each break that it must notice; whether one was not."""
    missed: list[str] = []
    for name in names:
        module = importlib.import_module(f"tests.{proof}.{name}")
        for broken in getattr(module, "SABOTAGES", ()):
            tally = Tally()
            with sabotaged(broken):
                module.prove(tally, min(scale, SABOTAGED_SCALE))
            if not tally.tried:
                said = "left out"
            else:
                said = (
                    f"noticed by {len(tally.failures)} of {tally.tried}" if tally.failures else "NOT NOTICED"
                )
                missed += [] if tally.failures else [f"{name}: {broken}"]
            print(f"{name}: {broken}: {said}", flush=True)
    print(f"\n{len(missed)} not noticed: {missed}" if missed else "\nall noticed")
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.proofs")
    parser.add_argument("proof", choices=DOCUMENTS)
    parser.add_argument(
        "name", nargs="?", default="", help="only the modules whose names hold this; or sabotage"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="share of the cases to try")
    parser.add_argument("--seed", type=int, default=1, help="other errors of a scripted model (tasks)")
    parser.add_argument("--part", type=_part, default=WHOLE, help="I/N: the first of ten is 1/10")
    return parser.parse_args()


def _part(text: str) -> Part:
    number, count = map(int, text.split("/"))
    if not 1 <= number <= count:
        raise ValueError(text)
    return Part(number, count)


def _with_other_parts(name: str, part: Part, tally: Tally) -> tuple[Tally, list[int]]:
    """All parts together, and the numbers of those that were not run yet."""
    if part == WHOLE:
        return tally, []
    folder = ROOT / "build" / "proofs" / f"{name}-{part.count}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part.number}.json").write_bytes(msgspec.json.encode(tally))
    files = [folder / f"{number}.json" for number in range(1, part.count + 1)]
    whole = Tally()
    for file in filter(Path.exists, files):
        whole.add(msgspec.json.decode(file.read_bytes(), type=Tally))
    return whole, [number for number, file in enumerate(files, 1) if not file.exists()]


def _write(document: Path, made_by: str, table: str) -> None:
    begin, end = f"<!-- made by {made_by} -->", "<!-- end -->"
    text = document.read_text()
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    document.write_text(f"{before}{begin}\n{table}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main())

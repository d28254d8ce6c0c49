"""The long proofs: `python -m tests.proofs attacks|faults|fuzz|soak|local [NAME] [--scale N]`, as `make` calls them.

Each module `tests/<proof>/prove_*.py` has a function `prove(tally, scale)` that counts its cases. `scale` is 1.0 for
the figures that the documents promise; less is a quick look. The table of each module is written into the proof's
document, between its two markers, with the scale it was made at. The exit status is 1 if any case failed.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from tests.proofs.tally import SHOWN, Tally

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    "attacks": ROOT / "docs" / "security.md",
    "faults": ROOT / "docs" / "reliability.md",
    "soak": ROOT / "docs" / "reliability.md",
    "fuzz": ROOT / "docs" / "edits.md",
    "local": ROOT / "docs" / "local-models.md",
}


def main() -> int:
    asked = _arguments()
    names = sorted(path.stem for path in (ROOT / "tests" / asked.proof).glob("prove_*.py"))
    chosen = [name for name in names if asked.name in name]
    total = Tally()
    for name in chosen:
        tally, begun = Tally(), time.monotonic()
        importlib.import_module(f"tests.{asked.proof}.{name}").prove(tally, asked.scale)
        print(
            f"\n{name}: {tally.tried} cases in {time.monotonic() - begun:.0f} s\n\n{tally.table()}",
            flush=True,
        )
        total.failures += tally.failures
        share = "" if asked.scale == 1.0 else f"Made with {asked.scale:.0%} of the cases.\n\n"
        _write(
            DOCUMENTS[asked.proof],
            f"make {asked.proof}: {name.removeprefix('prove_')}",
            share + tally.table(),
        )
    for failure in total.failures[: SHOWN * len(chosen)]:
        print(f"failed: {failure}", file=sys.stderr)
    print(f"\n{len(total.failures)} failed" if total.failures else "\nall held")
    return 1 if total.failures or not chosen else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.proofs")
    parser.add_argument("proof", choices=DOCUMENTS)
    parser.add_argument("name", nargs="?", default="", help="only the modules whose names hold this")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the cases to try")
    return parser.parse_args()


def _write(document: Path, made_by: str, table: str) -> None:
    begin, end = f"<!-- made by {made_by} -->", "<!-- end -->"
    text = document.read_text()
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    document.write_text(f"{before}{begin}\n{table}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main())

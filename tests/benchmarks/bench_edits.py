"""Edits of random files in every form, disturbed: what came of them, with a seed that stays."""

from __future__ import annotations

import time
from random import Random

from figures import Figure, show
from support.edit_replies import DISTURBANCES, FORMS, PLACED, tried

ROUNDS = 4
SEED = 13


def main() -> None:
    began = time.thread_time()
    cases = [
        tried(Random(f"{SEED}/{name}/{form}/{number}"), form, name)
        for name, kind in DISTURBANCES.items()
        for form in FORMS
        if form in kind.forms
        for number in range(ROUNDS)
    ]
    taken = (time.thread_time() - began) / len(cases)
    once = [case for case in cases if case.unique and case.disturbance in PLACED]
    right = sum(case.verdict == "right" for case in once)
    wrong = [case for case in cases if case.verdict not in ("right", "refused")]
    deep = sum(case.verdict == "wrong depth" for case in wrong)
    show(
        [
            Figure(f"wrong of {len(cases):,} disturbed edits", len(wrong) - deep, 0),
            Figure("new lines at a wrong depth", deep, 0),
            Figure(
                "not right where one place exists",
                100 - 100 * right / len(once),
                7,
                " %",
                f"{right:,} of {len(once):,} right",
            ),
            Figure("an edit drawn, written, read and placed", taken * 1000, 20, " ms"),
        ]
    )


if __name__ == "__main__":
    main()

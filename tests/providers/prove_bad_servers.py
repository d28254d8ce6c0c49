"""Every fault of a server with every request format: the next two messages are answered all the same. The table is
written into docs/notes/providers.md."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `support`, as in the tests

from support.strict.reply import MISBEHAVIOURS

from tests.proofs.tally import Tally
from tests.providers.test_bad_servers import MODELS, goes_on


def prove(tally: Tally, scale: float) -> None:
    faults = sorted(MISBEHAVIOURS)
    for fault in faults[: max(1, round(len(faults) * scale))]:
        for provider, model in MODELS:
            said = ""
            with tempfile.TemporaryDirectory() as folder:
                try:
                    asyncio.run(goes_on(provider, model, fault, Path(folder)))
                except Exception as error:
                    said = repr(error)
            tally.case(f"{provider}, {model}", not said, column="a faulty reply", what=f"{fault}: {said}")

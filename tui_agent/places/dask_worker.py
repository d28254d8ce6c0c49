"""The task that a Dask worker runs: it starts `tui-agent worker` and carries its bytes over queues of the scheduler.

Dask may run a task again when it loses a worker. Each start therefore asks its session first, which answers one.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import Any

from distributed import Queue, get_client

from tui_agent.places.place import engine_environment
from tui_agent.places.remains import RUN, end_all

#: Seconds without a word of the session after which it counts as gone, until its worker ends, and until it is killed.
SILENCE, PATIENCE = 30.0, 1.5
GRANTED = b"begin"


def names(task: str, start: str) -> tuple[str, str]:
    """The queues to the session, and to one start of the task."""
    return f"{task}-out", f"{task}-in-{start}"


def work(task: str) -> None:
    """Returns when the session ends the worker, or is silent."""
    client, start = get_client(), secrets.token_hex(8)
    sending, receiving = (Queue(name, client=client) for name in names(task, start))
    try:
        sending.put((start, b"", ""))
        if receiving.get(timeout=SILENCE) == GRANTED:
            _work(start, sending, receiving)
    except TimeoutError:
        return  # The session is gone, or another start has the task.
    finally:
        for queue in (sending, receiving):
            queue.close()


def _work(start: str, sending: Any, receiving: Any) -> None:
    with tempfile.TemporaryFile() as said, tempfile.TemporaryDirectory(prefix="tui-agent-") as folder:
        process = subprocess.Popen(
            (sys.executable, "-P", "-m", "tui_agent", "worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            cwd=folder,
            env={**engine_environment(os.environ), RUN: start},
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None

        def relay() -> None:
            assert process.stdout is not None
            while data := os.read(process.stdout.fileno(), 1 << 18):
                sending.put((start, data, ""))
            process.wait()
            said.seek(max(0, said.tell() - 2000))
            line = said.read().decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
            sending.put((start, b"", line or f"status {process.returncode}"))

        relaying = threading.Thread(target=relay, daemon=True)
        relaying.start()
        try:
            with suppress(BrokenPipeError):
                while data := receiving.get(timeout=SILENCE):
                    process.stdin.write(data)
                    process.stdin.flush()
        finally:
            with suppress(OSError):
                process.stdin.close()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            end_all(start)
            relaying.join(PATIENCE)

"""A real Slurm of one machine, in a folder of the test: its key service, its controller and its node."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from support.ssh_server import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
_SECONDS = 30.0
_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES OverSubscribe=FORCE:8
"""


def missing() -> str:
    """Why Slurm cannot be started here; empty if it can."""
    path = os.pathsep.join((os.environ["PATH"], "/usr/sbin"))
    absent = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (Debian: slurmctld slurmd slurm-client munge)"
    return "" if os.getuid() == 0 else "slurmd needs root"


@contextmanager
def slurm(folder: Path) -> Generator[dict[str, str]]:
    """Yields the variables with which srun finds it."""
    folder.mkdir(mode=0o755)
    (folder / "spool").mkdir()
    key, host = folder / "munge.key", os.uname().nodename.partition(".")[0]
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    configuration = folder / "slurm.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            host=host, folder=folder, controller=free_port(), node=free_port(), processors=os.cpu_count()
        )
    )
    variables = {"SLURM_CONF": str(configuration)}
    environment = {**os.environ, **variables, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    commands = (
        ("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket",
         f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed"),
        ("slurmctld", "-D"),
        ("slurmd", "-D"),
    )  # fmt: skip
    started = []
    try:
        with (folder / "said").open("wb") as said:
            for words in commands:
                one = subprocess.Popen(words, env=environment, stdout=said, stderr=said)
                started.append(one)
        until = time.monotonic() + _SECONDS
        while not _is_ready(environment):
            assert time.monotonic() < until, (folder / "said").read_text("utf-8", "replace")[-2000:]
            time.sleep(0.05)
        yield variables
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _is_ready(environment: dict[str, str]) -> bool:
    shown = subprocess.run(("sinfo", "-h", "-o", "%T"), env=environment, capture_output=True, check=False)
    return shown.stdout.strip() in (b"idle", b"mixed", b"allocated")

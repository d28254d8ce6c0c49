"""`tui-agent doctor`: installed parts, detected services and problems, as text, JSON or a bundle for a bug report."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from pathlib import Path

import click
import msgspec

from tui_agent import debug_log
from tui_agent.errors import FileError
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import replace_private
from tui_agent.files.text import escaped
from tui_agent.headless import arguments
from tui_agent.headless.output import json_line, note, row
from tui_agent.session.doctor import Report, examine, report_lines
from tui_agent.settings.folders import user_folders
from tui_agent.settings.loading import LoadedSettings, setting_lines
from tui_agent.settings.trust import load_as_trusted

_PACKED = (_REPORT, _SETTINGS, _LOG) = ("doctor.json", "settings.toml", debug_log.NAME)


@click.command()
@arguments.json_option
@click.option(
    "--bundle",
    metavar="FILE",
    shell_complete=arguments.files,
    help="Pack log, settings and versions for a bug report; secrets are masked.",
)
def doctor(as_json: bool, bundle: str | None) -> int:
    """Check the installation: programs, API keys, servers, sandbox."""
    workspace, packed = arguments.workspace_folder("."), arguments.new_file(bundle)
    folders = user_folders()
    report = asyncio.run(examine(workspace, folders))
    if packed is not None:
        _pack(packed, load_as_trusted(workspace), folders.state, report)
        note(f"{escaped(str(packed))} contains {', '.join(_PACKED)}: check it before you share it")
    if as_json:
        json_line(report)
    else:
        for mark, words in report_lines(report):
            row(f"{mark:<8} {words}")
    return 0 if report.ok else 1


def _pack(bundle: Path, loaded: LoadedSettings, logs: Path, report: Report) -> None:
    """Each text is redacted like the debug log. Raises `FileError`."""
    debug_log.flush()
    settings = [*setting_lines(loaded), *(f"# {fault}" for fault in loaded.faults)]
    texts = {
        _REPORT: json.dumps(msgspec.to_builtins(report), indent=2),
        _SETTINGS: "\n".join(settings),
        **{
            path.name: read_start(path).decode(errors="replace")
            for path in sorted(logs.glob(f"{_LOG}*"))
            if path.is_file()
        },
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, debug_log.redacted(text) + "\n")
    try:
        replace_private(bundle, packed.getvalue())
    except OSError as error:
        raise FileError(f"{bundle} cannot be written ({error.strerror})", "name another file") from error

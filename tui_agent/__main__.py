"""The entry point: `tui-agent`, or `python -m tui_agent`."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    """Answers `--version` at once; the command line does all else. Returns the exit status."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from tui_agent import __version__

        sys.stdout.write(f"tui-agent {__version__}\n")
        return 0
    if sys.platform == "win32":
        sys.stderr.write("tui-agent: Windows is not supported: run it in WSL\n")
        return 1
    gc.disable()  # imports create no garbage, and collection takes a tenth of their time
    try:
        from tui_agent import cli
    except KeyboardInterrupt:
        return 130
    except ImportError as error:
        if "--debug" in arguments:
            raise
        sys.stderr.write(f"tui-agent: cannot start ({error}): reinstall it\n")
        return 1
    gc.freeze()
    gc.enable()
    status = cli.main(arguments)
    gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(main())

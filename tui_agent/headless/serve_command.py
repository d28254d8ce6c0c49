"""`tui-agent serve`: the screen in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import ssl
import sys
from pathlib import Path

import click

from tui_agent.errors import UsageError
from tui_agent.headless import arguments
from tui_agent.headless.output import note, row
from tui_agent.sandbox.proxy import target


@click.command("serve")
@click.argument("path", required=False, default=".", shell_complete=arguments.folders)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="The port; any free one if not given."
)
@click.option(
    "--address",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Any but a loopback address needs a certificate and a key.",
)
@click.option(
    "--certificate", metavar="FILE", shell_complete=arguments.files, help="A TLS certificate (PEM)."
)
@click.option(
    "--key", metavar="FILE", shell_complete=arguments.files, help="The private key of the certificate (PEM)."
)
@click.option("--name", metavar="HOST", help="The host name in links; default: the address.")
def serve(
    path: str, port: int, address: str, certificate: str | None, key: str | None, name: str | None
) -> int:
    """Open the screen in a browser.

    Prints a link that works once, within a minute. Enter prints another; Ctrl+C stops the server, and
    sessions continue.
    """
    workspace = arguments.workspace_folder(path)
    try:
        number = ipaddress.ip_address("127.0.0.1" if address == "localhost" else address)
    except ValueError:
        raise UsageError(
            f"{address} is not an IP address", "give one, and the host name with --name"
        ) from None
    loopback = number.is_loopback
    if (certificate is None) != (key is None):
        raise UsageError("--certificate and --key belong together", "give both")
    if certificate is None and not loopback:
        raise UsageError(
            f"{address} can be reached from other machines, and nothing would be encrypted",
            "give --certificate and --key, or use `tui-agent ssh`",
        )
    if number.is_unspecified and name is None:
        raise UsageError(
            f"A link cannot lead to {address}", "give with --name the host name that browsers use"
        )
    tls = None
    if certificate and key:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            tls.load_cert_chain(certificate, key, password=lambda: "")
        except (OSError, ssl.SSLError, ValueError) as error:
            raise UsageError(
                f"{certificate} and {key} cannot be used ({error})",
                "give a PEM certificate and its key without password",
            ) from error
    host = "localhost" if address == "localhost" else str(number)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(workspace, address, port, tls, host if name is None else host_of(name)))
    return 0


async def _serve(workspace: Path, address: str, port: int, tls: ssl.SSLContext | None, host: str) -> None:
    from tui_agent.browser.server import BrowserServer

    server = BrowserServer(workspace, "https" if tls else "http", host)
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, end.set)

    def show_link() -> None:
        row(server.new_link())
        sys.stdout.flush()

    def read_enter() -> None:
        if sys.stdin.readline():
            show_link()
        else:
            loop.remove_reader(sys.stdin.fileno())

    try:
        async with server.listening(address, port, tls):
            show_link()
            note(
                "Open this link within a minute. Enter prints another; Ctrl+C stops the server, and sessions continue."
            )
            with contextlib.suppress(PermissionError, ValueError, OSError):  # A file cannot be waited for.
                loop.add_reader(sys.stdin.fileno(), read_enter)
            await end.wait()
    except OSError as error:
        raise UsageError(
            f"{address}:{port} cannot be used ({error.strerror or error})", "choose another port or address"
        ) from error


def host_of(name: str) -> str:
    """The name as browsers send it. Raises `UsageError`."""
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(name))
    try:
        return target(name, 0).host
    except ValueError:
        raise UsageError(f"{name} is not a host name", "give one without scheme and port") from None

"""`tui-agent login NAME`, `login status` and `logout NAME`: service logins without a screen."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import aclosing

import click
from msgspec import Struct

from tui_agent.errors import UsageError
from tui_agent.files.text import escaped
from tui_agent.headless.arguments import json_option
from tui_agent.headless.output import json_line, note, row, write_text
from tui_agent.model.login.services import SERVICES, LoginService
from tui_agent.model.login.services import service as service_named
from tui_agent.model.login.store import FILE, LoginStore


class LoginReport(Struct, frozen=True):
    """A line of `login status --json`: whether a login exists, and its storage (keyring or file)."""

    name: str
    title: str
    state: str
    kept: str | None
    models: str


@click.command()
@click.argument("name", metavar="copilot|chatgpt|openrouter|status")
@json_option
def login(name: str, as_json: bool) -> int:
    """Log in to a service to use its models without an API key.

    `copilot` (GitHub Copilot) and `chatgpt` (ChatGPT) show a code to enter on a web page; `openrouter` opens a page
    that redirects back. `status` lists the logins, with --json as JSON.
    """
    if name == "status":
        logins = LoginStore().names()
        for service in SERVICES:
            login, models = logins.get(service.name), f"{service.provider}/NAME"
            state = "logged out" if login is None else "ended" if login.ended else "logged in"
            kept = None if login is None else "keyring" if login.in_keyring else "file"
            if as_json:
                json_line(LoginReport(service.name, service.title, state, kept, models))
                continue
            words = {
                "logged in": f"logged in ({kept}): models {models}",
                "ended": f"the login has expired: run `tui-agent login {service.name}`",
                "logged out": f"not logged in: run `tui-agent login {service.name}`",
            }
            row(f"{service.name:<11} {words[state]}")
        return 0
    if as_json:
        raise UsageError("--json works only with `tui-agent login status`", "omit it")
    service, store = service_named(name), LoginStore()
    asyncio.run(_log_in(service, store))
    kept = store.names()[service.name]
    where = "the system's keyring" if kept.in_keyring else escaped(str(store.folder / FILE))
    row(f"Logged in to {service.title}. The token is stored in {where}.")
    row(f"Use it: tui-agent --model {service.suggestion}")
    return 0


@click.command()
@click.argument("name", metavar="copilot|chatgpt|openrouter")
def logout(name: str) -> int:
    """Log out of a service."""
    service = service_named(name)
    if forget_login(service.name):
        row(f"Logged out of {service.title}: its token is removed from this machine.")
    else:
        row(f"You were not logged in to {service.title}.")
    return 0


def forget_login(name: str) -> bool:
    """Returns False if there was none."""
    store = LoginStore()

    async def forget() -> bool:
        async with store.locked():
            return await asyncio.to_thread(store.remove, name)

    return asyncio.run(forget())


async def _log_in(service: LoginService, store: LoginStore) -> None:
    from tui_agent.model.login.access import log_in
    from tui_agent.model.login.flow import AwaitApproval, OpenPage, ShowCode

    pasted: asyncio.Queue[str] = asyncio.Queue()
    told = False
    async with aclosing(log_in(service, pasted, store)) as steps:
        async for step in steps:
            match step:
                case ShowCode(code, url, seconds):
                    write_text(f"Open {url}\nand enter the code {code}")
                    note(
                        f"The code is valid for {seconds / 60:.0f} minutes. Enter only a code that you requested."
                    )
                case OpenPage(url):
                    write_text(f"Open {url}")
                    note(
                        "If the browser is on another machine, paste the final address "
                        "(or the code in it) here and press Enter."
                    )
                    read_pasted(pasted)
                case AwaitApproval() if not told:
                    told = True
                    note("Waiting for the approval. Ctrl+C cancels.")
            sys.stdout.flush()


def read_pasted(pasted: asyncio.Queue[str]) -> None:
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            line = next((line for line in sys.stdin if line.strip()), "")
            if line:
                loop.call_soon_threadsafe(pasted.put_nowait, line.strip())
        except (OSError, ValueError, RuntimeError):
            pass

    threading.Thread(target=read, name="what is pasted", daemon=True).start()

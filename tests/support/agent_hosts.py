"""Servers on loopback that play the hosts of real agents behind TLS, with a certificate authority of the test.

    with AgentHosts(folder, brain) as hosts:
        monkeypatch.setattr(outside_agents, "HostProxy", hosts.proxy)

The dialects are those of the strict servers, without their rules for requests of our own: an agent of another maker
sends fields that only its maker knows. The key is checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from support.strict.dialect import Dialect
from support.strict.reply import Brain, Think
from support.strict.server import StrictServer
from support.strict.serving import Response, StrictRequest

from tui_agent.sandbox.proxy import HostProxy, Target

#: Providers by the host name that their agents use.
PROVIDERS = {
    "api.anthropic.com": "anthropic",
    "api.openai.com": "openai",
    "api.mistral.ai": "mistral",
    "generativelanguage.googleapis.com": "gemini",
}


class HostServer(StrictServer):
    """A provider without rules; `asked` has the paths of all requests."""

    def __init__(self, provider: str, brain: Brain, tls: ssl.SSLContext | None) -> None:
        super().__init__(provider, brain=brain, tls=tls)
        self.asked: list[str] = []

    @property
    def port(self) -> int:
        return self._loopback.port

    async def _handle(self, request: StrictRequest) -> Response:
        self.asked.append(f"{request.method} {request.path}")
        if "upgrade" in request.headers:
            return Response(426, {"error": {"message": "no WebSocket here"}}, closes=True)
        dialect = next((one for one in self.dialects if one.takes(request.path)), None)
        if request.method != "POST" or dialect is None:
            return Response(404, {"error": {"message": "not here", "type": "not_found_error"}}, closes=True)
        return await super()._handle(request)

    async def _answer(self, dialect: Dialect, request: StrictRequest) -> Response:
        self._read(dialect, request)
        if isinstance(
            items := request.body.get("input"), list
        ):  # codex sends tools as an item without content
            request.body["input"] = [item for item in items if "role" not in item or "content" in item]
        dialect.authorize(request)
        self.requests.append(request)
        reply = await asyncio.to_thread(self.brain, dialect.view(request.body))
        reply = replace(reply, parts=tuple(part for part in reply.parts if not isinstance(part, Think)))
        answering = self._counted(dialect, request, dialect.model_of(request), reply)
        items = dialect.compose(answering)
        if not dialect.streams(request):
            return Response(200, dialect.whole(answering, items))
        return Response(200, None, dialect.stream_headers(), self._pieces(dialect, answering, items))


class AgentHosts:
    """The servers, from `with` to its end. `authority` is the file that a client trusts."""

    def __init__(self, folder: Path, brain: Brain) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.authority, tls = _certificates(folder, [*PROVIDERS])
        self.servers = {host: HostServer(name, brain, tls) for host, name in PROVIDERS.items()}
        #: Requests that were not for an allowed host, by proxy.
        self.proxies: list[HostProxy] = []
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        for server in self.servers.values():
            self._open.enter_context(server)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def proxy(self, *arguments: Any, **options: Any) -> HostProxy:
        """A `HostProxy` that finds the hosts here, and no other."""

        async def nowhere(host: str, port: int) -> list[str]:
            raise OSError(f"{host}:{port} is not part of the test")

        here = {Target(host, 443): server.port for host, server in self.servers.items()}
        made = HostProxy(*arguments, **options, here=here, resolve=nowhere)
        self.proxies.append(made)
        return made


def _certificates(folder: Path, hosts: list[str]) -> tuple[Path, ssl.SSLContext]:
    """A file with an authority, and the context of a server with a certificate for hosts by it."""
    authority, signed = folder / "authority.pem", folder / "hosts.pem"
    names = ",".join(f"DNS:{host}" for host in hosts)

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    usage = (
        "-addext",
        "keyUsage=critical,keyCertSign,cRLSign",
        "-addext",
        "basicConstraints=critical,CA:TRUE",
    )
    openssl("req", "-x509", *curve, "-keyout", "a.key", "-out", authority.name, "-subj", "/CN=test", *usage)
    issued = ("-CA", authority.name, "-CAkey", "a.key", "-addext", "keyUsage=critical,digitalSignature")
    named = ("-addext", f"subjectAltName={names}", "-addext", "extendedKeyUsage=serverAuth")
    leaf = ("-addext", "basicConstraints=critical,CA:FALSE")
    openssl(
        "req",
        "-x509",
        *curve,
        "-keyout",
        "h.key",
        "-out",
        signed.name,
        "-subj",
        "/CN=h",
        *issued,
        *named,
        *leaf,
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(signed, folder / "h.key")
    return authority, context

"""Servers on loopback that play the documented logins of GitHub Copilot, ChatGPT and OpenRouter.

    with LoginServer() as server:
        server.decisions = ["authorization_pending", "slow_down"]    # then it is approved
        environment = server.environment
        ...
        assert server.asked == [...]

One server plays all three. Everything here may be called from any thread.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from typing import Any, Self
from urllib.parse import parse_qs

from support.strict.serving import Loopback, Response, StrictRequest

#: Tokens in the forms of the services; no test may find one of them in an output, a log or a prompt.
GITHUB_TOKEN = "ghu_Zk3mQ9xT7vB2nL5cR8wY1dF4hJ6pS0aGeU2i"
REFRESH_TOKEN = "rt_9fKq3Zx7LmW2Tn8VbC5Rj1Yd6Hs4Pg0Eu3AiQoXw"
ROUTER_KEY = "sk-or-v1-4f7a9c2e8b1d6053f9e7a4c8b2d1605e3f7a9c4b8d2e1f60"
#: Seconds between two questions; tests wait for nothing else.
INTERVAL = 0.01
CODE = "WDJB-MJHT"
ACCOUNT = "acc-1234"


def web_token(number: int = 1, lasts: float = 3600.0) -> str:
    """A signed token as OpenAI gives it; the number makes it another one."""
    claims = {
        "exp": int(time.time() + lasts),
        "https://api.openai.com/auth": {"chatgpt_account_id": ACCOUNT},
        "n": number,
    }
    parts = ({"alg": "RS256", "typ": "JWT"}, claims)
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    signature = hashlib.sha256(f"{head}.{body}".encode()).hexdigest()
    return f"{head}.{body}.{signature}"


def copilot_token(number: int = 1) -> str:
    """A token of Copilot's API."""
    digest = hashlib.sha256(str(number).encode()).hexdigest()
    return f"tid={digest[:32]};exp={int(time.time()) + 1500 + number};sku=plus_monthly;st=dotcom:{digest}"


class LoginServer:
    """The server, from `with` to its end."""

    def __init__(self) -> None:
        #: How the next questions are answered, one a question; then the login is approved.
        self.decisions: list[str] = []
        #: How tokens are refreshed, one a request; then with a new token. A number is a status.
        self.refreshes: list[int] = []
        #: Makes the next access token, from its number.
        self.copilot_access: Any = copilot_token
        self.chatgpt_access: Any = web_token
        #: Seconds that access tokens last.
        self.lasts = 1500.0
        self.code_lasts = 900.0
        #: The address of Copilot's API in its tokens; "" for none.
        self.api = ""
        #: The paths that were asked, in their order.
        self.asked: list[str] = []
        self.violations: list[str] = []
        self.refresh_token = REFRESH_TOKEN
        self.challenges: dict[str, str] = {}
        self._tokens = 0
        self._lock = threading.Lock()
        self._loopback = Loopback(self._handle)

    def __enter__(self) -> Self:
        self._loopback.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loopback.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._loopback.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead every login here."""
        names = ("TUI_AGENT_LOGIN_GITHUB", "TUI_AGENT_LOGIN_OPENAI", "TUI_AGENT_LOGIN_OPENROUTER")
        return dict.fromkeys(names, self.url)

    def count(self, path: str) -> int:
        """How often a path was asked."""
        return self.asked.count(path)

    def approve(self, address: str) -> str:
        """What OpenRouter redirects the browser to when the person approves the page at `address`."""
        query = {name: values[0] for name, values in parse_qs(address.partition("?")[2]).items()}
        code = f"code-{len(self.challenges)}"
        self.challenges[code] = query["code_challenge"]
        return f"{query['callback_url']}?code={code}"

    async def _handle(self, request: StrictRequest) -> Response:
        with self._lock:
            self.asked.append(request.path)
            raw = request.raw.decode()
            if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
                body: Any = {name: values[0] for name, values in parse_qs(raw).items()}
            else:
                body = json.loads(raw) if raw else {}
            match request.path:
                case "/login/device/code":
                    return self._github_code(body)
                case "/login/oauth/access_token":
                    return self._github_token(body)
                case "/copilot_internal/v2/token":
                    return self._copilot_token(request)
                case "/api/accounts/deviceauth/usercode":
                    return self._openai_code(body)
                case "/api/accounts/deviceauth/token":
                    return self._openai_decision(body)
                case "/oauth/token":
                    return self._openai_token(body)
                case "/api/v1/auth/keys":
                    return self._router_key(body)
            return self._wrong(f"nothing is at {request.path}", 404)

    def _wrong(self, words: str, status: int = 400) -> Response:
        self.violations.append(words)
        return Response(status, {"error": "bad_request", "message": words})

    def _github_code(self, body: dict[str, Any]) -> Response:
        if body != {"client_id": "Iv1.b507a08c87ecfe98", "scope": "read:user"}:
            return self._wrong(f"a wrong request for a code: {body}")
        page = "https://github.com/login/device"
        answer = {"device_code": "d" * 40, "user_code": CODE, "verification_uri": page}
        return Response(200, {**answer, "expires_in": self.code_lasts, "interval": INTERVAL})

    def _github_token(self, body: dict[str, Any]) -> Response:
        grant = "urn:ietf:params:oauth:grant-type:device_code"
        if body != {"client_id": "Iv1.b507a08c87ecfe98", "device_code": "d" * 40, "grant_type": grant}:
            return self._wrong(f"a wrong question for a token: {body}")
        match self._decision():
            case "":
                return Response(200, {"access_token": GITHUB_TOKEN, "token_type": "bearer", "scope": ""})
            case "garbage":
                return Response(200, {"hello": "world"})
            case "slow_down":
                return Response(200, {"error": "slow_down", "interval": 2 * INTERVAL})
            case code:
                return Response(200, {"error": code, "error_description": f"The answer is {code}."})

    def _copilot_token(self, request: StrictRequest) -> Response:
        if request.headers.get("authorization") != f"token {GITHUB_TOKEN}":
            return self._wrong("a token of Copilot needs GitHub's", 401)
        if self.refreshes and (status := self.refreshes.pop(0)) != 200:
            return Response(status, {"message": "Bad credentials"})
        self._tokens += 1
        answer = {"token": self.copilot_access(self._tokens), "expires_at": int(time.time() + self.lasts)}
        endpoints = {"endpoints": {"api": self.api}} if self.api else {}
        return Response(200, {**answer, "refresh_in": self.lasts, **endpoints})

    def _openai_code(self, body: dict[str, Any]) -> Response:
        if body != {"client_id": "app_EMoamEEZ73f0CkXaXp7hrann"}:
            return self._wrong(f"a wrong request for a code: {body}")
        answer = {"device_auth_id": "device-1", "user_code": CODE, "interval": str(INTERVAL)}
        return Response(200, {**answer, "expires_in": self.code_lasts})

    def _openai_decision(self, body: dict[str, Any]) -> Response:
        if body != {"device_auth_id": "device-1", "user_code": CODE}:
            return self._wrong(f"a wrong question for a token: {body}")
        match self._decision():
            case "":
                answer = {
                    "authorization_code": "code-1",
                    "code_challenge": "c",
                    "code_verifier": "verifier-1",
                }
                return Response(200, answer)
            case "authorization_pending":
                return Response(403, {"error": {"message": "Device authorization is pending", "code": None}})
            case "slow_down":
                return Response(
                    429, {"error": {"message": "Too many requests", "type": "slow_down"}, "interval": 0.02}
                )
            case "garbage":
                return Response(200, {"hello": "world"})
            case code:
                return Response(400, {"error": {"message": f"The answer is {code}.", "code": code}})

    def _openai_token(self, body: dict[str, Any]) -> Response:
        client = {"client_id": "app_EMoamEEZ73f0CkXaXp7hrann"}
        first = {
            "grant_type": "authorization_code",
            "code": "code-1",
            "redirect_uri": f"{self.url}/deviceauth/callback",
            "code_verifier": "verifier-1",
        }
        again = {
            "grant_type": "refresh_token",
            "refresh_token": self.refresh_token,
            "scope": "openid profile email",
        }
        if body not in ({**client, **first}, {**client, **again}):
            return Response(
                401, {"error": {"message": "Your refresh token is invalid", "code": "refresh_token_reused"}}
            )
        if body["grant_type"] == "refresh_token":
            if self.refreshes and (status := self.refreshes.pop(0)) != 200:
                return Response(status, {"error": {"message": "Refused.", "code": "refresh_token_expired"}})
            self.refresh_token = f"{self.refresh_token}n"  # each is good for one time
        self._tokens += 1
        access = self.chatgpt_access(self._tokens)
        tokens = {"access_token": access, "id_token": web_token(0), "refresh_token": self.refresh_token}
        return Response(200, tokens)

    def _router_key(self, body: dict[str, Any]) -> Response:
        digest = hashlib.sha256(body.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            body.get("code_challenge_method") != "S256"
            or self.challenges.pop(body.get("code", ""), None) != challenge
        ):
            return Response(403, {"error": {"message": "Invalid code or code_verifier", "code": 403}})
        return Response(200, {"key": ROUTER_KEY, "user_id": "user-1"})

    def _decision(self) -> str:
        return self.decisions.pop(0) if self.decisions else ""

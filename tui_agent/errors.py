"""Errors shown to the user.

    TuiAgentError
    ├── UsageError
    ├── SettingsError
    ├── PathRefused                a path outside the workspace, or a protected one
    │   └── LooksSecret            a file that is sent only with consent
    ├── FileError                  a file that cannot be read or written
    │   ├── Undecodable            not text: binary, or an unsupported encoding
    │   ├── TooLarge
    │   └── Outdated
    ├── EditFailed                 a change without a matching place
    │   └── Ambiguous              a change with two equal places
    ├── ChildFailed                a child process that exited or cannot start
    ├── ModelError                 a failed model request
    │   ├── NoModel
    │   ├── BadKey
    │   │   └── LoginEnded         the service rejects the refresh of a login
    │   ├── Unreachable            no connection, no server, no response in time
    │   │   ├── TimedOut
    │   │   └── Overloaded         the provider has no capacity
    │   ├── RateLimited            still rejected after the last retry
    │   ├── ContextTooLong
    │   ├── Refused
    │   ├── EmptyReply
    │   └── RequestRejected        any other rejection of the request
    ├── ServerFailed               an MCP server that is unusable, or a call that failed
    ├── PlaceLost                  the worker of a place that cannot start, or ended
    ├── LoginFailed                a login that was denied, expired or malformed
    ├── LimitReached
    ├── SessionError               a session that is missing or not writable
    │   ├── OpenElsewhere
    │   ├── NotKept
    │   ├── RecordRefused          an event that cannot be recorded
    │   ├── AnswerNeeded           a command that requires confirmation
    │   ├── Damaged
    │   └── TooNew
    ├── Fault                      an unexpected error; its traceback is in the debug log
    └── Interrupted

`str(error)` is `what: remedy`, a sentence about the problem and its remedy.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec


class TuiAgentError(Exception):
    """`what` is the problem, with its `remedy`."""

    title = "Unexpected error"
    exit_status = 1

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


class UsageError(TuiAgentError):
    title = "Invalid arguments"
    exit_status = 2


class SettingsError(TuiAgentError):
    title = "Invalid configuration"
    exit_status = 2


class PathRefused(TuiAgentError):
    title = "Path not allowed"


class LooksSecret(PathRefused):
    title = "Possible secret"


class FileError(TuiAgentError):
    title = "File error"


class Undecodable(FileError):
    title = "Not a text file"


class TooLarge(FileError):
    title = "File too large"


class Outdated(FileError):
    """The disk differs from the writer's base version; the file was not written."""

    title = "File changed on disk"


class EditFailed(TuiAgentError):
    title = "Change not applicable"


class Ambiguous(EditFailed):
    title = "Change is ambiguous"


class ChildFailed(TuiAgentError):
    title = "Helper process failed"


class ModelError(TuiAgentError):
    title = "No answer from the model"


class NoModel(ModelError):
    title = "No model configured"
    exit_status = 2


class BadKey(ModelError):
    title = "Key rejected"
    exit_status = 3


class LoginEnded(BadKey):
    title = "Login expired"


class Unreachable(ModelError):
    title = "Cannot reach the model"
    exit_status = 3


class TimedOut(Unreachable):
    title = "Model timed out"


class Overloaded(Unreachable):
    title = "Model overloaded"
    exit_status = 1


class RateLimited(ModelError):
    title = "Rate limit"


class ContextTooLong(ModelError):
    title = "Request too long for the model"


class Refused(ModelError):
    title = "Model declined"


class EmptyReply(ModelError):
    title = "Empty answer"


class RequestRejected(ModelError):
    title = "Request rejected"


class SchemaRefused(RequestRejected):
    """The server cannot enforce the schema; repeat the request without it."""


class ServerFailed(TuiAgentError):
    """A server of the Model Context Protocol cannot be used, or failed to do a call."""

    title = "Server failed"


class PlaceLost(TuiAgentError):
    """The worker of a place ended before its sub-task, could not start, or is of another version."""

    title = "Place lost"


class LoginFailed(TuiAgentError):
    title = "Not logged in"


class LimitReached(TuiAgentError):
    """`limit` is the name of the setting."""

    title = "Limit reached"

    def __init__(self, what: str, remedy: str, limit: str = "") -> None:
        super().__init__(what, remedy)
        self.limit = limit


class SessionError(TuiAgentError):
    title = "Session error"


class AnswerNeeded(SessionError):
    """The command requires confirmation before it runs `how`. `once`: one answer applies to the whole
    session.
    """

    title = "Question"

    def __init__(self, how: str, command: str, *, once: bool = False) -> None:
        super().__init__(f"`{command}` would run {how}", "allow it first")
        self.how, self.command, self.once = how, command, once


class PasteTooLong(SessionError):
    """Pasted text exceeds the model's limit. `lines` replace it in the prompt."""

    title = "Paste too long"

    def __init__(self, what: str, lines: Sequence[str]) -> None:
        super().__init__(
            what,
            "save it as a file in the workspace and mention it; the model reads the parts that it needs",
        )
        self.lines = lines


class OpenElsewhere(SessionError):
    title = "Session open elsewhere"

    def __init__(self, what: str, remedy: str, session: str = "") -> None:
        super().__init__(what, remedy)
        self.session = session


class NotKept(SessionError):
    title = "Session not saved"


class RecordRefused(SessionError):
    title = "Not saved"


class Damaged(SessionError):
    title = "Session damaged"


class TooNew(SessionError):
    title = "Session of a newer version"


class Fault(TuiAgentError):
    title = "Error in tui-agent"


class Interrupted(TuiAgentError):
    title = "Interrupted"
    exit_status = 130


def install_command(package: str) -> str:
    """The command that adds a package to this program's environment, which has no pip if uv made it."""
    import shutil

    python, package = shlex.quote(sys.executable), shlex.quote(package)
    if find_spec("pip") is not None:
        return f"{python} -m pip install {package}"
    if shutil.which("uv"):
        return f"uv pip install --python {python} {package}"
    return f"pip --python {python} install {package}"

"""Everything that can go wrong and be told to a person.

    TuiAgentError
    ├── UsageError                 wrong arguments (exit 2)
    ├── SettingsError              a configuration that cannot be used (exit 2)
    ├── PathRefused                a path that leads outside, or to what nobody may touch
    │   └── LooksSecret            a file that is not sent to anybody without asking
    ├── FileError                  a file that cannot be read or written
    │   ├── Undecodable            no text: binary, or an encoding we cannot keep
    │   ├── TooLarge               over the limit for what was asked
    │   └── Outdated               the disk is not what the writer saw
    ├── EditFailed                 a change that has no certain place
    │   └── Ambiguous              a change with two equal places
    ├── ChildFailed                a helper process that died or cannot start
    ├── ModelError                 a model's answer that did not come (exit 1)
    │   ├── NoModel                none is configured (exit 2)
    │   ├── BadKey                 the provider refused the key (exit 3)
    │   │   └── LoginEnded         the service refuses to refresh a login
    │   ├── Unreachable            no connection, no such server, no answer in time (exit 3)
    │   │   ├── TimedOut
    │   │   └── Overloaded         the provider has no room now (exit 1)
    │   ├── RateLimited            still refused after the last retry
    │   ├── ContextTooLong         the provider says the request is too long
    │   ├── Refused                the provider or the model declined
    │   ├── EmptyReply             the model ended without a word
    │   └── RequestRejected        any other refusal of the request itself
    ├── LoginFailed                a login that was denied, expired or not understood (exit 1)
    ├── LimitReached               a limit on steps, requests, tokens or money (exit 1)
    ├── SessionError               a session that is missing or cannot be written
    │   ├── OpenElsewhere          another process writes it
    │   ├── NotKept                nothing can be written where it would be kept
    │   ├── RecordRefused          something that cannot be written down as it is
    │   ├── OnlyRead               another process has it open, and this one only looks
    │   ├── AnswerNeeded            a command that runs only where the person says yes
    │   ├── Damaged                its log is not a log any more
    │   └── TooNew                 a newer version wrote it
    ├── Fault                      something that nobody expected; its traceback is in the debug log
    └── Interrupted                the person stopped it (exit 130)

An error is one sentence of what happened and one of what to do; both are written for the person, name the
thing, and hold no traceback. `str(error)` is `what: remedy`.
"""

from __future__ import annotations

from collections.abc import Sequence


class TuiAgentError(Exception):
    """Base of all errors that are told to a person; `what` happened, and `remedy`, what to do about it."""

    title = "Something went wrong"
    exit_status = 1

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


class UsageError(TuiAgentError):
    title = "Wrong arguments"
    exit_status = 2


class SettingsError(TuiAgentError):
    title = "Configuration not usable"
    exit_status = 2


class PathRefused(TuiAgentError):
    title = "Path refused"


class LooksSecret(PathRefused):
    title = "Looks like a secret"


class FileError(TuiAgentError):
    title = "File not usable"


class Undecodable(FileError):
    title = "Not a text file"


class TooLarge(FileError):
    title = "File too large"


class Outdated(FileError):
    """The content on disk differs from the content that the writer started from; nothing was written."""

    title = "File changed meanwhile"


class EditFailed(TuiAgentError):
    title = "Change could not be placed"


class Ambiguous(EditFailed):
    title = "Change fits more than one place"


class ChildFailed(TuiAgentError):
    title = "Helper process failed"


class ModelError(TuiAgentError):
    title = "No answer from the model"


class NoModel(ModelError):
    title = "No model configured"
    exit_status = 2


class BadKey(ModelError):
    title = "Key refused"
    exit_status = 3


class LoginEnded(BadKey):
    title = "Login ended"


class Unreachable(ModelError):
    title = "Model not reachable"
    exit_status = 3


class TimedOut(Unreachable):
    title = "Model did not answer in time"


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
    """The server cannot hold a reply to the schema: it is to be asked without."""


class LoginFailed(TuiAgentError):
    title = "Not logged in"


class LimitReached(TuiAgentError):
    """`limit` is its name, that of a setting."""

    title = "Limit reached"

    def __init__(self, what: str, remedy: str, limit: str = "") -> None:
        super().__init__(what, remedy)
        self.limit = limit


class SessionError(TuiAgentError):
    title = "Session not usable"


class AnswerNeeded(SessionError):
    """A command that the person has to be asked about: it would run `how`. `once`: one answer is for the session."""

    title = "Question"

    def __init__(self, how: str, command: str, *, once: bool = False) -> None:
        super().__init__(f"`{command}` would run {how}", "allow that first")
        self.how, self.command, self.once = how, command, once


class PasteTooLong(SessionError):
    """What was pasted is more than the model takes. `lines` are those that are written in its place."""

    title = "Paste too long"

    def __init__(self, what: str, lines: Sequence[str]) -> None:
        super().__init__(
            what,
            "save it as a file of the workspace and ask about that: the model then reads the parts that it needs",
        )
        self.lines = lines


class OpenElsewhere(SessionError):
    """`session` is the id of the one that another process writes."""

    title = "Session open elsewhere"

    def __init__(self, what: str, remedy: str, session: str = "") -> None:
        super().__init__(what, remedy)
        self.session = session


class NotKept(SessionError):
    title = "Session not kept"


class RecordRefused(SessionError):
    title = "Not kept"


class OnlyRead(SessionError):
    """The session is looked at only: another process has it open."""


class Damaged(SessionError):
    title = "Session damaged"


class TooNew(SessionError):
    title = "Session from a newer version"


class Fault(TuiAgentError):
    title = "Fault in tui-agent"


class Interrupted(TuiAgentError):
    title = "Interrupted"
    exit_status = 130

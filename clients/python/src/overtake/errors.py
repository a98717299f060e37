"""What can go wrong, by type. Each error says what to do.

```
OvertakeError
├── ConnectionLost        nobody answers, or the connection broke while an answer was awaited
├── LoginRefused          the broker said that it does not let this user in
├── Refused               the broker says no: code and text
│   └── LeaseOver         the lease ended before this
├── NotConfirmed          the broker did not take a message
├── Unroutable            there is no queue for a message
├── TimedOut              no answer in time
└── Closed                this client is closed
```
"""

from __future__ import annotations

__all__ = [
    "Closed",
    "ConnectionLost",
    "LeaseOver",
    "LoginRefused",
    "NotConfirmed",
    "OvertakeError",
    "Refused",
    "TimedOut",
    "Unroutable",
]


class OvertakeError(Exception):
    """Everything that this library raises by itself."""


class ConnectionLost(OvertakeError):
    """Nobody answers at the broker's address, or the connection broke while an answer was awaited."""


class LoginRefused(OvertakeError):
    """The broker said that it does not let this user in, or not into this virtual host.

    A first login raises it at once. A later one is tried again, see `login_retry`. A connection that is cut during the login is
    `ConnectionLost`.
    """


class Refused(OvertakeError):
    """The broker says no."""

    def __init__(self, code: int | str, text: str, hint: str = "") -> None:
        super().__init__(f"{text}: {hint}" if hint else text)
        self.code = code
        """Over AMQP the reply code, such as 404; over HTTP a stable word, such as `no-such-queue`."""
        self.text = text
        """What happened."""
        self.hint = hint
        """What to do, where the broker says so."""

    def __reduce__(self) -> tuple[type[Refused], tuple[int | str, str, str]]:
        return type(self), (self.code, self.text, self.hint)


class LeaseOver(Refused):
    """The lease ended before this: its time was over, or it was settled. Somebody else may have the message by now."""


class NotConfirmed(OvertakeError):
    """The broker did not take a message: the queue is full, the disk is, or the message is not one for this queue."""


class Unroutable(OvertakeError):
    """There is no queue for a message."""


class TimedOut(OvertakeError, TimeoutError):
    """No answer in time. What was asked for may still happen."""


class Closed(OvertakeError):
    """This client is closed, or was never opened."""


def not_confirmed(where: str) -> NotConfirmed:
    """The broker answered a publish with a nack."""
    return NotConfirmed(
        f"the broker did not take a message to {where}: the queue or the disk is full, or its priority is not one of the "
        "queue's scheme; look at the queue's settings, and publish again later"
    )


def unroutable(where: str) -> Unroutable:
    """The broker returned a mandatory message."""
    return Unroutable(f"there is no queue for a message to {where}: declare the queue, or bind one to the exchange")


def timed_out(what: str, seconds: float, why: OvertakeError | None = None) -> TimedOut:
    """Nothing came within this time; `why` is what keeps the connection from being made again."""
    behind = f" ({why})" if why is not None else ""
    return TimedOut(
        f"{what} took more than {seconds:g} s: it may still happen; look at the broker, or wait longer{behind}"
    )


def refused_over_amqp(code: int, text: str) -> OvertakeError:
    """A channel or a connection that the broker closed."""
    hints = {
        403: "ask for the right, or log in as somebody else",
        404: "declare it first, or check its name",
        405: "it belongs to another connection",
        406: "correct the message, or what it is declared with",
    }
    return Refused(code, text, hints.get(code, ""))


def cancelled_by_broker(queue: str) -> Refused:
    """The broker ended a consumer, and does not say why."""
    return Refused(
        404,
        f"the broker ended the consumer of {queue}: the queue was deleted, or the right to read it was taken away",
        "declare the queue or ask for the right, and consume again",
    )


#: Reply codes by which a broker refuses a user, or keeps it out of a virtual host.
_LOGIN_CODES = frozenset({402, 403, 530})

#: The reply code of a connection that an operator closed, or a broker that is stopping: neither is about the login.
_FORCED = 320


def not_opened(code: int, text: str, user: str, where: str) -> OvertakeError:
    """The broker closed a connection before it was open, and said why."""
    if code in _LOGIN_CODES:
        return login_refused(user, where, text)
    return not_there(where, text) if code == _FORCED else refused_over_amqp(code, text)


def login_refused(user: str, where: str, why: str) -> LoginRefused:
    """The user, the password or the virtual host is wrong."""
    return LoginRefused(
        f"the broker at {where} does not let {user} in ({why}): check user, password and virtual host; guest comes from the "
        "broker's own machine only"
    )


def not_there(where: str, why: object) -> ConnectionLost:
    """Nobody answers."""
    return ConnectionLost(f"no broker answers at {where} ({why}): check the address, and that the broker runs")


def lost(where: str, why: object) -> ConnectionLost:
    """The connection broke."""
    return ConnectionLost(f"the connection to {where} was lost ({why}): it comes again by itself")


def unanswered(why: object) -> ConnectionLost:
    """The connection broke while an answer was awaited that can no longer come."""
    return ConnectionLost(f"the answer cannot come any more ({why}): ask again if that does no harm")


def closed() -> Closed:
    """It was closed before."""
    return Closed("this client is closed: open another, or keep it open for longer")

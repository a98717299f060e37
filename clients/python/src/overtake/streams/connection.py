"""What redis-py says, in our words; and how it is asked: without its own ways to try again, and with answers as the server gave them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import redis
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry as Attempts
except ImportError as missing:  # pragma: no cover - the tests have it
    raise ImportError("streams are read with redis-py: pip install 'overtake-client[streams]'") from missing

from ..errors import ConnectionLost, LoginRefused, OvertakeError, Refused
from .steps import Fault, Lost

#: A server that says nothing for so long is gone, seconds.
PATIENCE_S = 10.0


def options(given: dict[str, Any], attempts: Callable[..., Any] = Attempts) -> dict[str, Any]:
    """The options of a connection."""
    own = {"protocol": 2, "decode_responses": False, "socket_timeout": PATIENCE_S, "socket_connect_timeout": PATIENCE_S}
    # What was read and did not arrive is asked for again here, and not read once more.
    return {**given, **own, "retry": attempts(NoBackoff(), 0)}


def said(error: Exception) -> OvertakeError:
    """An error of redis-py."""
    if isinstance(error, redis.AuthenticationError):
        return LoginRefused(f"the server does not let this user in: {error}; see to the user and the password")
    if isinstance(error, redis.ResponseError):
        code = getattr(error, "status_code", None)
        return Fault(f"{code} {error}" if isinstance(code, str) else str(error))
    return Lost(f"the server does not answer: {error}")


def at_first(error: OvertakeError) -> OvertakeError:
    """The same, where there was no connection yet."""
    if isinstance(error, Fault):
        return Refused(error.code, str(error))
    return ConnectionLost(str(error)) if isinstance(error, Lost) else error


#: What redis-py raises.
ERRORS = (redis.RedisError, OSError)

__all__ = ["ERRORS", "PATIENCE_S", "Redis", "at_first", "options", "said"]

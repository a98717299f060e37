"""A scope has a priority, and what is published inside has it, too.

The scope is a context variable: each thread and each task has its own, a task inherits that of whoever made it, and so does
`asyncio.to_thread`. Invariant: whatever ends a scope, the one around it holds again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from enum import IntEnum
from types import TracebackType
from typing import Self

__all__ = ["Priority", "current_priority", "processing_priority"]

#: The least and the greatest priority there is.
PRIORITY_MIN, PRIORITY_MAX = -(2**31), 2**31 - 1


class Priority(IntEnum):
    """How urgent something is: the words for the numbers that most people need. Any other whole number will do as well."""

    BULK = -100
    """Imports, rebuilding everything."""
    LOW = -50
    """Migrations, backfills."""
    NORMAL = 0
    """What people wait for; what holds where nobody says anything."""
    HIGH = 50
    """What must not wait behind that, such as payments."""
    CRITICAL = 100
    """Security, compliance."""


_scope: ContextVar[int | None] = ContextVar("overtake_processing_priority", default=None)


class processing_priority:  # noqa: N801 - it is used as a function, as in the seed
    """A scope: what is published inside `with processing_priority(Priority.LOW):` has this priority unless it says another.

    `async with` does the same. Scopes nest, and the innermost wins. One object may be entered again, also inside itself.
    """

    __slots__ = ("_priority", "_tokens")

    def __init__(self, priority: int) -> None:
        """Of this priority: a `Priority`, or any whole number from −2³¹ to 2³¹−1."""
        self._priority = checked(priority)
        self._tokens: list[Token[int | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(_scope.set(self._priority))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _scope.reset(self._tokens.pop())

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def current_priority() -> int:
    """Which priority holds here: the scope's, else `Priority.NORMAL`."""
    scope = _scope.get()
    return Priority.NORMAL if scope is None else scope


def scope_priority() -> int | None:
    """The scope's priority; None outside of any scope."""
    return _scope.get()


def resolved(priority: int | None) -> int | None:
    """What a message is published with: the priority it says, else the scope's, else none."""
    return _scope.get() if priority is None else checked(priority)


@contextmanager
def scope_of(priority: int | None) -> Iterator[None]:
    """The scope in which a message of this priority is handled. One that says nothing is handled outside of any scope."""
    token = _scope.set(_worded(priority) if priority is not None else None)
    try:
        yield
    finally:
        _scope.reset(token)


def checked(priority: object) -> int:
    """This priority, if it is one."""
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise TypeError(
            f"a priority is a whole number, not {priority!r}: take one of Priority.BULK, LOW, NORMAL, HIGH and CRITICAL, "
            "or an int"
        )
    if not PRIORITY_MIN <= priority <= PRIORITY_MAX:
        raise ValueError(f"{priority} is no priority: take a number from {PRIORITY_MIN} to {PRIORITY_MAX}")
    return _worded(priority)


def named(name: str) -> int | None:
    """The number of a word in any case, also of the scheme `named`; None if it is no word for a priority."""
    return Priority.BULK if name.lower() == "background" else Priority.__members__.get(name.upper())


_WORDS = {int(priority): priority for priority in Priority}


def _worded(priority: int) -> int:
    """The same number, as a `Priority` where there is a word for it."""
    return _WORDS.get(priority, priority)

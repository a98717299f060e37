"""What is to be asked, and in which order, told without asking: a generator of commands, which is sent the answers.

So it is written once, and one driver asks with a plain connection, the other with asyncio.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import OvertakeError

T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """A command. The answer is sent; `Fault` or `Lost` is thrown."""

    words: tuple[Any, ...]
    is_reading: bool = False
    """On the connection that reads, which may wait."""
    wait_s: float = 0.0
    """How long the server may take on purpose."""


@dataclass(frozen=True)
class Pause:
    """Nothing for so many seconds, unless it is stopped."""

    seconds: float


@dataclass(frozen=True)
class Begin:
    """A new connection that reads."""


Steps = Generator[Ask | Pause | Begin, Any, T]


class Fault(OvertakeError):
    """What the server says against a command."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code, _, self.text = text.partition(" ")

    def is_busy(self) -> bool:
        """Whether the server cannot do now what it will do later."""
        return self.code in BUSY


class Lost(OvertakeError):
    """There is no connection, or no answer."""


BUSY = {
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "NOREPLICAS",
    "MISCONF",
    "OOM",
}


def ask(*words: Any) -> Ask:
    """A command on a connection of its own."""
    return Ask(words)


def evaluate(script: str, keys: list[str], *words: Any, is_reading: bool = False) -> Ask:
    """A script."""
    return Ask(("EVAL", script, len(keys), *keys, *words), is_reading)


def text(value: Any) -> str:
    """The text of an answer."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

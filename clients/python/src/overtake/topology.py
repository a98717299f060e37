"""What was declared, remembered in its order, so that it can be declared again where it is gone.

What is there stays as it is: somebody may have changed a setting since, and a reconnect is no reason to change it back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass

from . import rest
from .rest import Call


@dataclass(frozen=True, slots=True)
class _Declared:
    look: Call | None
    """Asks whether it is there. None: making it again changes nothing."""
    make: Call


class Topology:
    """Queues, exchanges and bindings of one client."""

    def __init__(self) -> None:
        self._declared: dict[tuple[str, ...], _Declared] = {}
        self._lock = threading.Lock()

    def queue(self, name: str, make: Call) -> None:
        """A queue was declared so."""
        self._remember(("queue", name), _Declared(rest.queue(name), make))

    def exchange(self, name: str, make: Call) -> None:
        """An exchange was declared so."""
        self._remember(("exchange", name), _Declared(rest.exchange(name), make))

    def binding(self, queue: str, exchange: str, make: Call) -> None:
        """A queue was bound so."""
        self._remember(("binding", queue, exchange, repr(make.body)), _Declared(None, make))

    def forget_queue(self, name: str) -> None:
        """A queue was deleted, and its bindings with it."""
        self._forget(lambda key: key[:2] in (("queue", name), ("binding", name)))

    def forget_exchange(self, name: str) -> None:
        """An exchange was deleted, and its bindings with it."""
        self._forget(lambda key: key[:2] == ("exchange", name) or (key[0], key[2:3]) == ("binding", (name,)))

    def restore(self) -> Generator[Call, bool, None]:
        """Requests to be made one after the other; each is told whether what it asks for is there, or was done."""
        with self._lock:
            declared = list(self._declared.values())
        for each in declared:
            if each.look is None or not (yield each.look):
                yield each.make

    def _remember(self, key: tuple[str, ...], declared: _Declared) -> None:
        with self._lock:
            self._declared.pop(key, None)
            self._declared[key] = declared

    def _forget(self, is_gone: Callable[[tuple[str, ...]], bool]) -> None:
        with self._lock:
            self._declared = {key: declared for key, declared in self._declared.items() if not is_gone(key)}

"""The connection of the plain client: whoever holds the baton drives it, and nobody else touches it.

```
                    ┌── no consumers, nobody else waits: drives it itself until its answer is there
 a caller ──────────┤
                    └── else: leaves an operation in [ops], and waits on a lock of its own
 the link's thread ──── drives it whenever there is anything to hear or to do; else looks now and then, for heartbeats
```

pika's connections belong to one thread at a time, and heartbeats want somebody to be there. Ruled out: a `BlockingConnection` under a
lock, since who waits for a message would keep out who publishes; a thread that alone has the connection, since two changes of threads
for each publish are a third of what it takes; a connection per thread, since each costs a login and a socket.

Parts (the publisher, each consumer) are told when there is a connection and when there is none any more. Everything that is named
`on_…` runs under the baton only, and never calls into the application.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pika
from pika.adapters.select_connection import IOLoop, SelectConnection
from pika.credentials import ExternalCredentials, PlainCredentials
from pika.exceptions import AuthenticationError

from . import decoding as _decoding  # noqa: F401 - before anything is read
from .address import Address
from .backoff import Refusals, waits
from .errors import LoginRefused, OvertakeError, closed, login_refused, lost, not_opened, not_there

log = logging.getLogger("overtake")

#: How long a connection may take to be closed in order, s; then it is left.
CLOSE_MAX_S = 5.0

#: How often somebody looks at a connection on which nothing is waited for, and how late a time-out may be, s.
TICK_S = 0.25


class Waiter(Protocol):
    """Somebody who waits."""

    @property
    def is_over(self) -> bool:
        """Whether the wait is over."""

    def wait(self, timeout: float | None) -> bool:
        """Whether it was over in time."""


class Part(Protocol):
    """What lives on a connection and outlives it."""

    @property
    def is_busy(self) -> bool:
        """Whether it wants to hear something."""

    def on_up(self, connection: SelectConnection) -> None:
        """There is a connection."""

    def on_down(self, error: OvertakeError) -> None:
        """There is none any more; another will come."""

    def on_end(self, error: OvertakeError) -> None:
        """There will be none any more."""


class Link:
    """A connection that comes again."""

    def __init__(
        self,
        address: Address,
        *,
        tls: ssl.SSLContext | None,
        name: str,
        heartbeat: int,
        external: bool,
        connect_timeout: float,
        login_retry: float | None,
        restore: Callable[[], None],
    ) -> None:
        self._address = address
        self._parameters = pika.ConnectionParameters(
            host=address.host,
            port=address.port,
            virtual_host=address.vhost,
            credentials=ExternalCredentials() if external else PlainCredentials(address.user, address.password),
            heartbeat=heartbeat,
            ssl_options=pika.SSLOptions(tls, address.host) if tls else None,
            socket_timeout=connect_timeout,
            stack_timeout=connect_timeout,
            client_properties={"connection_name": name, "product": "overtake-client"},
        )
        self._restore = restore
        self._loop = IOLoop()
        self._ops: deque[Callable[[], None]] = deque()
        self._is_woken = False
        self._baton = threading.Lock()
        self._is_wanted = threading.Event()
        self._is_closing = False
        self._is_stopped = False
        self._ended: OvertakeError | None = None
        self._connection: SelectConnection | None = None
        self._is_up = False
        self._said: tuple[int, str] | None = None
        self._refusals = Refusals(address.where, login_retry)
        self.why: OvertakeError | None = None
        """Why there is no connection now; None while there is one."""
        self._parts: list[Part] = []
        self._waits = waits()
        self._first: _Answer | None = _Answer()
        self._thread = threading.Thread(target=self._run, name=f"{name} link", daemon=True)

    def start(self) -> None:
        """Connects. A first attempt that fails is an error; later ones are repeated."""
        first = self._first
        assert first is not None
        self._thread.start()
        error = first.wait()
        if error is not None:
            self._thread.join()
            raise error

    def call(self, op: Callable[[], None]) -> None:
        """Has this done under the baton, after what was asked for before."""
        if self._ended is not None:
            raise self._ended
        self._ops.append(op)
        if not self._is_woken:
            self._is_woken = True
            self._loop.add_callback_threadsafe(self._on_ops)
            self._is_wanted.set()

    def drive(self, op: Callable[[], None], waiter: Waiter, timeout: float | None) -> bool:
        """Has this done, and waits until its waiter is done, driving if nobody else does; whether it was in time."""
        if not self._baton.acquire(blocking=False):
            self.call(op)
            return waiter.wait(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        try:
            if self._ended is not None:
                raise self._ended
            self._on_ops()
            op()
            while not waiter.is_over and self._is_up and (end is None or time.monotonic() < end):
                self._turn()
        finally:
            self._baton.release()
            # After the release: whoever asks from now on finds the baton free, and whoever asked before is seen.
            if self._ops or self._is_busy():
                self._is_wanted.set()
        return waiter.wait(None if end is None else max(end - time.monotonic(), 0))

    def attach(self, part: Part) -> None:
        """Another part; it is told at once if there is a connection."""
        self.call(lambda: self._on_attach(part))

    def close(self) -> None:
        """Ends it, after what was asked for before. Who waits for something hears that it is closed."""
        if self._ended is None:
            self.call(self._on_close)
        self._thread.join()

    def _run(self) -> None:
        self._loop.activate_poller()
        with self._baton:
            self._connect()
        self._on_tick()
        while not self._is_stopped:
            # Before we look: what is wanted from now on wakes us.
            self._is_wanted.clear()
            if self._baton.acquire(blocking=False):
                try:
                    self._turns()
                finally:
                    self._baton.release()
            if not self._is_stopped:
                self._is_wanted.wait(TICK_S)
        with self._baton:
            self._ended = self._ended or closed()
            self._end_parts(self._ended)
            self._on_ops()
            self._loop.deactivate_poller()
            self._loop.close()

    def _turns(self) -> None:
        """Drives as long as there is anything to hear; else for one turn, which waits for nothing."""
        while self._is_busy() and not self._is_stopped:
            self._turn()
        if not self._is_stopped:
            self._loop.add_callback_threadsafe(self._on_ops)
            self._turn()

    def _turn(self) -> None:
        self._loop.poll()
        self._loop.process_timeouts()

    def _is_busy(self) -> bool:
        """Whether there is anything to hear or to do."""
        return bool(self._ops) or not self._is_up or self._is_closing or any(part.is_busy for part in self._parts)

    def _on_tick(self) -> None:
        """No turn takes longer, so that whoever drives looks at the clock."""
        self._loop.call_later(TICK_S, self._on_tick)

    def _stop(self) -> None:
        self._is_stopped = True

    def _connect(self) -> None:
        self._said = None
        connection = SelectConnection(
            self._parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_open_error,
            on_close_callback=self._on_closed,
            custom_ioloop=self._loop,
        )
        # pika takes a cut connection for a wrong password. The callback hears whether the broker said anything.
        connection.callbacks.add(0, pika.spec.Connection.Close, self._on_said)

    def _on_said(self, frame: Any) -> None:
        self._said = (frame.method.reply_code, frame.method.reply_text)

    def _on_ops(self) -> None:
        # Before the first is taken: what comes from now on wakes us again.
        self._is_woken = False
        ops = self._ops
        while ops:
            try:
                ops.popleft()()
            except Exception:
                log.exception("an operation failed in the connection's thread")

    def _on_attach(self, part: Part) -> None:
        if self._ended is not None or self._is_closing:
            part.on_end(self._ended or closed())
            return
        self._parts.append(part)
        if self._is_up and self._connection is not None:
            part.on_up(self._connection)

    def on_detach(self, part: Part) -> None:
        """It hears nothing any more."""
        if part in self._parts:
            self._parts.remove(part)

    def _on_open(self, connection: Any) -> None:
        self._connection = connection
        if self._is_closing:
            connection.close()
        elif self._first is not None:
            self._on_restored(connection)
        else:
            # Over HTTP, which may take its time: heartbeats go on meanwhile.
            threading.Thread(target=self._restore_then, args=(connection,), daemon=True).start()

    def _restore_then(self, connection: SelectConnection) -> None:
        try:
            self._restore()
        except Exception as error:
            # Whoever waits for the connection must not wait for a thread that has ended.
            log.error("what was declared is not declared again: %r", error, exc_info=error)
        try:
            self.call(lambda: self._on_restored(connection))
        except OvertakeError:
            log.debug("closed before it was connected again")

    def _on_restored(self, connection: SelectConnection) -> None:
        if connection is not self._connection or self._is_closing:
            return  # It was lost meanwhile.
        self._is_up = True
        self.why = None
        self._waits = waits()
        self._refusals.end()
        for part in tuple(self._parts):
            part.on_up(connection)
        first, self._first = self._first, None
        if first is None:
            log.info("connected again to %s", self._address.where)
        else:
            first.give(None)

    def _on_open_error(self, _: Any, error: BaseException | str) -> None:
        self.why = refusal = self._refusal(error)
        if self._first is not None:
            self._ended = refusal
            self._stop()
            self._first.give(refusal)
        elif self._is_closing:
            self._stop()
        elif not isinstance(refusal, LoginRefused):
            self._again(refusal)
        elif (wait := self._refusals.wait(refusal)) is not None:
            self._loop.call_later(wait, self._on_again)
        else:
            self._ended = refusal
            self._end_parts(refusal)
            self._stop()

    def _on_closed(self, _: Any, error: BaseException) -> None:
        self._connection, self._is_up = None, False
        if self._is_closing:
            self._stop()
            return
        self.why = why = lost(self._address.where, error)
        for part in tuple(self._parts):
            part.on_down(why)
        self._again(why)

    def _again(self, why: OvertakeError) -> None:
        wait = next(self._waits)
        log.warning("no connection to %s, again in %.2f s: %s", self._address.where, wait, why)
        self._loop.call_later(wait, self._on_again)

    def _on_again(self) -> None:
        if not self._is_closing:
            self._connect()

    def _on_close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._end_parts(closed())
        self._loop.call_later(CLOSE_MAX_S, self._stop)
        if self._connection is not None and self._connection.is_open:
            self._connection.close()
        else:
            self._stop()

    def _end_parts(self, error: OvertakeError) -> None:
        parts, self._parts = self._parts, []
        for part in parts:
            part.on_end(error)

    def _refusal(self, error: BaseException | str) -> OvertakeError:
        """Why there is no connection, in our words. Only a word of the broker is a refusal: a cut connection is none."""
        causes = list(_causes(error))
        if self._said is not None:
            return not_opened(*self._said, self._address.user, self._address.where)
        if isinstance(causes[-1], AuthenticationError):
            return login_refused(self._address.user, self._address.where, "it offers no way to log in like this")
        return not_there(self._address.where, causes[-1])


def _causes(error: Any) -> Iterator[Any]:
    """What pika says, and what it says that this was for; the innermost comes last."""
    while error is not None:
        yield error
        error = (getattr(error, "exceptions", None) or [getattr(error, "exception", None)])[-1]


class _Answer:
    """One answer for one who waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._error: OvertakeError | None = None

    def give(self, error: OvertakeError | None) -> None:
        self._error = error
        self._lock.release()

    def wait(self) -> OvertakeError | None:
        self._lock.acquire()
        return self._error

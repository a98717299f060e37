"""The connection of the asyncio client: one task keeps it, and makes it again.

aio-pika's own robust connection is not used: it waits as long each time, does not publish again what was not confirmed, and declares
over AMQP what we declare over HTTP. Its plain connection, its channels and its codec are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import traceback
from collections.abc import Awaitable, Callable
from typing import Protocol

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection
from aiormq.abc import AbstractChannel as Underlay
from aiormq.exceptions import (
    AuthenticationError,
    ChannelAccessRefused,
    ChannelClosed,
    ChannelLockedResource,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    ConnectionClosed,
    ConnectionNotAllowed,
    InvalidFrameError,
    ProbableAuthenticationError,
)
from pamqp import commands as spec

from .. import decoding as _decoding  # noqa: F401 - before anything is read
from ..address import Address
from ..backoff import Refusals, waits
from ..errors import LoginRefused, OvertakeError, closed, login_refused, not_opened, not_there, refused_over_amqp
from ..errors import lost as lost_at

log = logging.getLogger("overtake")


class Part(Protocol):
    """What lives on a connection and outlives it."""

    async def on_up(self, connection: AbstractConnection) -> None:
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
        restore: Callable[[], Awaitable[None]],
    ) -> None:
        self._address = address
        self._url = address.amqp(heartbeat=heartbeat, name=name, external=external)
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._restore = restore
        self._refusals = Refusals(address.where, login_retry)
        self._parts: list[Part] = []
        self._connection: AbstractConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self.ended: OvertakeError | None = None
        self.why: OvertakeError | None = None
        """Why there is no connection now; None while there is one."""

    async def start(self) -> None:
        """Connects. A first attempt that fails is an error; later ones are repeated."""
        connection, lost = await self._connect()
        self._connection = connection
        self._task = asyncio.create_task(self._keep(connection, lost), name="overtake link")

    async def attach(self, part: Part) -> None:
        """Another part; it is told at once if there is a connection."""
        if self.ended is not None:
            part.on_end(self.ended)
            return
        self._parts.append(part)
        if self._connection is not None:
            await self._tell_up(part, self._connection)

    def detach(self, part: Part) -> None:
        """It hears nothing any more."""
        if part in self._parts:
            self._parts.remove(part)

    async def close(self) -> None:
        """Ends it. Who waits for something hears that it is closed."""
        if self.ended is None:
            self.ended = closed()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        parts, self._parts = self._parts, []
        for part in parts:
            part.on_end(self.ended)

    async def _keep(self, connection: AbstractConnection, lost: asyncio.Future[BaseException | None]) -> None:
        try:
            await self._keep_on(connection, lost)
        except LoginRefused as error:
            self.ended = error  # It is not tried again; whoever waits is told.
            parts, self._parts = self._parts, []
            for part in parts:
                part.on_end(error)

    async def _keep_on(self, connection: AbstractConnection, lost: asyncio.Future[BaseException | None]) -> None:
        while True:
            self.why = why = lost_at(self._address.where, await lost)
            self._connection = None
            for part in tuple(self._parts):
                part.on_down(why)
            with contextlib.suppress(Exception):
                await connection.close()
            connection, lost = await self._connect_again(why)
            try:
                await self._restore()
                self._connection = connection
                for part in tuple(self._parts):
                    await self._tell_up(part, connection)
            except Exception as error:
                # The task that connects again must not end: it closes this connection and makes another.
                log.error("the connection to %s is made again: %r", self._address.where, error, exc_info=error)
                with contextlib.suppress(Exception):
                    await connection.close()
            else:
                log.info("connected again to %s", self._address.where)

    async def _tell_up(self, part: Part, connection: AbstractConnection) -> None:
        try:
            await part.on_up(connection)
        except OvertakeError as error:
            self.detach(part)
            part.on_end(error)
        except Exception as error:
            if not is_closed(connection):
                raise
            log.debug("the connection was lost as it came: %s", error)

    async def _connect_again(
        self, why: OvertakeError
    ) -> tuple[AbstractConnection, asyncio.Future[BaseException | None]]:
        usual = waits()
        while True:
            if isinstance(why, LoginRefused):
                wait = self._refusals.wait(why)
                if wait is None:
                    raise why
            else:
                wait = next(usual)
                log.warning("no connection to %s, again in %.2f s: %s", self._address.where, wait, why)
            await asyncio.sleep(wait)
            try:
                opened = await self._connect()
            except OvertakeError as error:
                self.why = why = error
            else:
                self.why = None
                self._refusals.end()
                return opened

    async def _connect(self) -> tuple[AbstractConnection, asyncio.Future[BaseException | None]]:
        try:
            connection = await aio_pika.connect(self._url, ssl_context=self._tls, timeout=self._connect_timeout)
        except Exception as error:
            raise self._refusal(error) from error
        lost: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

        def on_close(_: object, error: BaseException | None) -> None:
            if not lost.done():
                lost.set_result(error)

        connection.close_callbacks.add(on_close)
        if is_closed(connection):
            on_close(None, None)
        return connection, lost

    def _refusal(self, error: BaseException) -> OvertakeError:
        """Translates an error of the libraries below. Only a word of the broker is a refusal: a cut connection is none."""
        said = _said(error)
        if said is not None:
            return not_opened(*said, self._address.user, self._address.where)
        if isinstance(error, AuthenticationError):
            return login_refused(self._address.user, self._address.where, "it offers no way to log in like this")
        return not_there(self._address.where, str(error) or type(error).__name__)


def _said(error: BaseException) -> tuple[int, str] | None:
    """The reply code and the text by which a broker closed a connection before it was open."""
    text = str(error)
    if isinstance(error, ProbableAuthenticationError):
        return 403, text
    if isinstance(error, ConnectionNotAllowed):
        return 530, text
    if isinstance(error, ConnectionClosed) and error.args and isinstance(error.args[0], int):
        return error.args[0], str(error.args[-1])
    if isinstance(error, InvalidFrameError):
        # aiormq expected something else, and names the class of the frame only. The frame is where the error was raised.
        for raised in traceback.walk_tb(error.__traceback__):
            frame = raised[0].f_locals.get("frame")
            if isinstance(frame, spec.Connection.Close):
                return int(frame.reply_code or 0), str(frame.reply_text)
    return None


def is_closed(connection: AbstractConnection) -> bool:
    """Whether it is of no use any more, whatever it says of itself."""
    return connection.is_closed or connection.transport is None or connection.transport.connection.is_closed


async def open_channel(connection: AbstractConnection, *, confirms: bool) -> tuple[AbstractChannel, Underlay]:
    """A channel, and what it is made of. Who drops the first has the second closed."""
    channel = await connection.channel(publisher_confirms=confirms)
    return channel, await channel.get_underlay_channel()


_CODES: tuple[tuple[type[ChannelClosed], int], ...] = (
    (ChannelAccessRefused, 403),
    (ChannelNotFoundEntity, 404),
    (ChannelLockedResource, 405),
    (ChannelPreconditionFailed, 406),
)


def channel_refusal(error: BaseException | None) -> OvertakeError | None:
    """Why the broker closed a channel; None if it was not the broker."""
    if not isinstance(error, ChannelClosed) or not error.args or error.args[-1] is None:
        return None
    text = str(error.args[-1])
    for kind, code in _CODES:
        if isinstance(error, kind):
            return refused_over_amqp(code, text)
    code = error.args[0] if isinstance(error.args[0], int) else 0
    return refused_over_amqp(code, text)

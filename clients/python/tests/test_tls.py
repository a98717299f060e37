"""TLS on both ports, and certificates instead of passwords."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from overtake import AsyncClient, Client, ConnectionLost

from .broker import Broker
from .rows import row


class Secured:
    """A broker under TLS, and what one needs to talk to it."""

    def __init__(self, directory: Path) -> None:
        self.authority = trustme.CA()
        issued = self.authority.issue_cert("127.0.0.1", "localhost")
        key, chain, authority = directory / "key.pem", directory / "cert.pem", directory / "authority.pem"
        issued.private_key_pem.write_to_path(str(key))
        for pem in issued.cert_chain_pems:
            pem.write_to_path(str(chain), append=True)
        self.authority.cert_pem.write_to_path(str(authority))
        self.broker = Broker(
            directory,
            *("--amqps", "127.0.0.1:0", "--https", "127.0.0.1:0"),
            *("--tls-cert", str(chain), "--tls-key", str(key), "--tls-client-ca", str(authority)),
        )

    @property
    def amqps(self) -> str:
        """Where it speaks AMQP under TLS."""
        return self.broker.urls["amqps"]

    @property
    def https(self) -> str:
        """Where it serves HTTP under TLS."""
        return self.broker.urls["https"]

    def trusting(self) -> ssl.SSLContext:
        """Trusts the broker's authority, and no other."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context

    def showing(self, user: str) -> ssl.SSLContext:
        """Shows a certificate as well."""
        context = self.trusting()
        self.authority.issue_cert(f"{user}@example.org", common_name=user).configure_cert(context)
        return context


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    secured = Secured(tmp_path)
    with secured.broker:
        yield secured


@row("TLS, client certificates")
def test_both_ports_speak_tls_plain(secured: Secured) -> None:
    with Client(secured.amqps, http=secured.https, tls=secured.trusting()) as client:
        client.declare_queue("q")
        client.publish("q", b"")
        [lease] = client.lease("q")
        lease.ack()


@row("TLS, client certificates")
async def test_both_ports_speak_tls_asyncio(secured: Secured) -> None:
    async with AsyncClient(secured.amqps, http=secured.https, tls=secured.trusting()) as client:
        await client.declare_queue("q")
        await client.publish("q", b"")
        [lease] = await client.lease("q")
        await lease.ack()


@row("TLS, client certificates")
def test_a_certificate_logs_in_plain(secured: Secured) -> None:
    url = secured.amqps.replace("://", "://nobody:wrong@")
    with Client(url, http=secured.https, tls=secured.showing("guest"), external=True) as client:
        client.declare_queue("q")
        client.publish("q", b"", user_id="guest")


@row("TLS, client certificates")
async def test_a_certificate_logs_in_asyncio(secured: Secured) -> None:
    url = secured.amqps.replace("://", "://nobody:wrong@")
    async with AsyncClient(url, http=secured.https, tls=secured.showing("guest"), external=True) as client:
        await client.declare_queue("q")
        await client.publish("q", b"", user_id="guest")


@row("TLS, client certificates")
def test_who_is_not_vouched_for_is_not_spoken_to_plain(secured: Secured) -> None:
    with pytest.raises(ConnectionLost, match="certificate"):
        Client(secured.amqps, http=secured.https)


@row("TLS, client certificates")
async def test_who_is_not_vouched_for_is_not_spoken_to_asyncio(secured: Secured) -> None:
    with pytest.raises(ConnectionLost, match="certificate"):
        await AsyncClient(secured.amqps, http=secured.https).connect()

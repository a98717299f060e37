"""Addresses, without a broker."""

from __future__ import annotations

import pytest

from overtake.address import Address


def test_what_is_missing_is_as_people_know_it() -> None:
    address = Address.parse("amqp://broker.example")
    assert (address.host, address.port, address.user, address.password) == ("broker.example", 5672, "guest", "guest")
    assert (address.vhost, address.http) == ("/", "http://broker.example:15672")


def test_everything_can_be_said() -> None:
    address = Address.parse("amqps://a%40b:p%2Fw@[::1]:1234/a%2Fb", "https://other:1/")
    assert (address.user, address.password, address.vhost, address.host) == ("a@b", "p/w", "a/b", "::1")
    assert (address.is_tls, address.http, address.where) == (True, "https://other:1", "::1:1234")
    assert Address.parse("amqps://[::1]").http == "https://[::1]:15671"


def test_the_url_for_the_library_below_says_the_same() -> None:
    url = Address.parse("amqp://a%40b:p%2Fw@host/a%2Fb").amqp(heartbeat=5, name="my app", external=False)
    assert url == "amqp://a%40b:p%2Fw@host:5672/a%2Fb?heartbeat=5&name=my%20app"


@pytest.mark.parametrize("url", ["http://host", "host:5672", ""])
def test_what_is_no_address_says_what_to_do(url: str) -> None:
    with pytest.raises(ValueError, match="begins with amqp"):
        Address.parse(url)
    with pytest.raises(ValueError, match="http="):
        Address.parse("amqp://host", "host:15672")

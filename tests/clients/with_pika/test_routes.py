"""Routes, by a client that never heard of them: it publishes to `overtake.routes` and consumes from an endpoint."""

import os
import urllib.request

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, UnroutableError
from words import get, publish, take

pytestmark = pytest.mark.ours

CAMERA = "/messages/modules/Camera/outputs/o"

MANIFEST = """
[routes.alerts]
route = "FROM /messages/modules/Camera/* WHERE severity = 'high' INTO $upstream"
priority = 0
timeToLiveSecs = 86400

[routes]
telemetry = "FROM /messages/* INTO $upstream"
hot = "FROM /messages/* WHERE $body.temperature > 30 INTO BrokeredEndpoint('/modules/Cooler/inputs/hot')"
"""


@pytest.fixture(autouse=True)
def routes():
    """The routes of the virtual host, set over HTTP."""
    where = os.environ["OVERTAKE_HTTP_URL"]
    logins = urllib.request.HTTPPasswordMgrWithPriorAuth()
    logins.add_password(None, where, "guest", "guest", is_authenticated=True)
    opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(logins))
    headers = {"content-type": "application/toml"}
    request = urllib.request.Request(f"{where}/v1/routes", MANIFEST.encode(), headers, method="PUT")
    with opener.open(request) as answer:
        assert answer.status == 200


def send(channel, path, *bodies, **properties):
    publish(channel, path, *bodies, exchange="overtake.routes", **properties)


def test_an_alert_overtakes_telemetry_on_its_way_up(channel):
    channel.confirm_delivery()
    send(channel, CAMERA, b"frame 1", b"frame 2", headers={"severity": "low"})
    send(channel, CAMERA, b"alert", headers={"severity": "high"}, message_id="a-1")
    alert, first, second = take(channel, "$upstream", 3)
    assert [alert.body, first.body, second.body] == [b"alert", b"frame 1", b"frame 2"]
    assert (alert.method.exchange, alert.method.routing_key) == ("overtake.routes", CAMERA)
    assert (alert.properties.message_id, alert.properties.headers) == ("a-1", {"severity": "high"})


def test_a_condition_looks_into_a_body_of_json(channel):
    channel.confirm_delivery()
    for body in (b'{"temperature": 31}', b'{"temperature": 29}', b'{"temperature": "31"}'):
        send(channel, "/messages/modules/Probe", body, content_type="application/json")
    assert get(channel, "/modules/Cooler/inputs/hot").body == b'{"temperature": 31}'
    assert channel.basic_get("/modules/Cooler/inputs/hot") == (None, None, None)
    take(channel, "$upstream", 3)


def test_what_no_route_is_for_comes_back(channel):
    channel.confirm_delivery()
    with pytest.raises(UnroutableError) as returned:
        channel.basic_publish("overtake.routes", "/elsewhere", b"lost", pika.BasicProperties(), mandatory=True)
    [message] = returned.value.messages
    assert (message.body, message.method.reply_text) == (b"lost", "NO_ROUTE")


def test_the_exchange_is_there_and_not_ours(channel):
    channel.exchange_declare("overtake.routes", passive=True)
    with pytest.raises(ChannelClosedByBroker, match="overtake.routes"):
        channel.exchange_declare("overtake.routes", exchange_type="topic")

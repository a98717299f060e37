"""Tools that know RabbitMQ's management API: they see our queues as they see RabbitMQ's."""

import asyncio
from urllib.parse import quote

import pytest
import requests
from flower.utils.broker import Broker

PAGE = "page=1&use_regex=true&pagination=false&page_size=100"


@pytest.fixture
def queue(guest, name):
    """A queue of ten levels with three messages, one of them urgent."""
    arguments = {"x-max-priority": 9}
    declare = {"durable": True, "auto_delete": False, "arguments": arguments}
    guest.ask("PUT", f"/api/queues/%2F/{name}", 201, json=declare)
    for priority in (0, 0, 9):
        publish = {
            "properties": {"priority": priority},
            "routing_key": name,
            "payload": "p",
            "payload_encoding": "string",
        }
        answer = guest.ask("POST", "/api/exchanges/%2F/amq.default/publish", 200, json=publish)
        assert answer["routed"] is True
    return name


def test_flower_shows_our_queues(url, http, queue):
    api = http.replace("http://", "http://guest:guest@") + "/api/"
    # As Celery writes the virtual host `/`; Flower quotes what is quoted already.
    host = url.split("//")[1].split("/")[0]
    broker = Broker(f"amqp://guest:guest@{host}//", http_api=api)
    (shown,) = asyncio.run(broker.queues([queue]))
    assert (shown["name"], shown["messages"], shown["consumers"]) == (queue, 3, 0)


def test_the_requests_of_keda_s_scaler_are_answered(guest, queue):
    # One queue, by its name.
    info = guest.ask("GET", f"/api/queues/%2F/{queue}", 200)
    assert (info["name"], info["messages"], info["messages_ready"]) == (queue, 3, 3)
    assert info["messages_unacknowledged"] == 0
    assert info["message_stats"]["publish_details"]["rate"] >= 0
    # Many, by a regular expression, in pages.
    for vhost in ("", "/%2F"):
        found = guest.ask("GET", f"/api/queues{vhost}?{PAGE}&name={quote('^' + queue + '$')}", 200)
        assert [item["name"] for item in found["items"]] == [queue]
        assert found["items"][0]["messages"] == 3


def test_the_depth_of_each_priority_is_told(guest, queue):
    depths = guest.ask("GET", f"/api/queues/%2F/{queue}", 200)["messages_by_priority"]
    assert {name: depth["messages"] for name, depth in depths.items()} == {"0": 2, "9": 1}


def test_messages_are_fetched_and_purged(guest, queue):
    get = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    (message,) = guest.ask("POST", f"/api/queues/%2F/{queue}/get", 200, json=get)
    assert (message["payload"], message["properties"]["priority"], message["message_count"]) == ("p", 9, 2)
    guest.ask("DELETE", f"/api/queues/%2F/{queue}/contents", 204)
    assert guest.ask("GET", f"/api/queues/%2F/{queue}", 200)["messages"] == 0


def test_definitions_go_out_and_come_in_again(guest, queue):
    definitions = guest.ask("GET", "/api/definitions", 200)
    assert queue in [one["name"] for one in definitions["queues"]]
    plan = guest.ask("POST", "/api/definitions?dry_run=true", 200, json=definitions)
    assert plan == {"changes": []}


def test_without_a_login_nothing_is_told(http):
    for path in ("overview", "queues", "users", "definitions", "whoami", "nodes"):
        answer = requests.get(f"{http}/api/{path}")
        assert (answer.status_code, answer.json()["error"]) == (401, "not_authorized"), path

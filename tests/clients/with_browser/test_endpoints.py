"""Endpoints and sources at the page: made, watched, tested, paused, deleted, and taken back."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect


@pytest.fixture
def plant(api, request):
    """A virtual host of its own, with two queues."""
    name = request.node.name.replace("_", "-")[5:40]
    api("PUT", f"/v1/vhosts/{name}", {})
    for queue in ["out", "in"]:
        api("PUT", f"/v1/queues/{queue}?vhost={name}", {})
    yield name
    api("DELETE", f"/v1/vhosts/{name}")


def confirm(page, verb):
    """Says yes to the question."""
    page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()


def make(page, noun, name, definition):
    """A new one, from its definition."""
    page.get_by_role("button", name=f"New {noun}").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Definition").fill(json.dumps(definition))
    confirm(page, "Make it")


def accessible(page):
    """What axe finds."""
    found = Axe().run(page).response["violations"]
    assert found == [], [(one["id"], one["nodes"][0]["html"]) for one in found]


def test_an_endpoint_is_made_watched_paused_and_deleted(api, open_page, picture, plant):
    page = open_page(f"#/endpoints?vhost={plant}")
    expect(page.get_by_text("No endpoint")).to_be_visible()
    accessible(page)
    for priority in [1, 9, 1]:
        api("POST", f"/v1/queues/out/messages?vhost={plant}", {"body": "x", "priority": priority})
    make(page, "endpoint", "move", {"queue": "out", "to": {"queue": {"name": "in"}}})
    lanes = page.get_by_role("table", name="Lanes")
    urgent = lanes.get_by_role("row").filter(has=page.get_by_role("cell", name="9", exact=True))
    expect(urgent.locator("[data-label=Sent]")).to_have_text("1")
    expect(lanes.get_by_role("row").nth(2).locator("[data-label=Sent]")).to_have_text("2")
    picture(page, "endpoint")
    accessible(page)

    page.get_by_role("button", name="Test").click()
    expect(page.get_by_text("move connects")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    confirm(page, "Pause")
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    api("POST", f"/v1/queues/out/messages?vhost={plant}", {"body": "late", "priority": 5})
    expect(lanes.get_by_role("row").filter(has_text="5").locator("[data-label=Waiting]")).to_have_text("1")
    page.get_by_role("button", name="Resume").click()
    expect(lanes.get_by_role("row").filter(has_text="5").locator("[data-label=Sent]")).to_have_text("1")

    page.get_by_role("button", name="Delete").click()
    confirm(page, "Delete")
    expect(page.get_by_text("No endpoint")).to_be_visible()
    page.get_by_role("button", name="Undo").last.click()
    expect(page.get_by_role("link", name="move")).to_be_visible()


def test_what_cannot_be_is_told_and_changes_nothing(api, open_page, plant):
    page = open_page(f"#/endpoints?vhost={plant}")
    page.seen.expected.append("422")
    make(page, "endpoint", "bad", {"queue": "out", "to": {"webhook": {"url": "ftp://x"}}})
    expect(page.get_by_text("must begin with http:// or https://")).to_be_visible()
    assert api("GET", f"/v1/endpoints?vhost={plant}")["endpoints"] == []


def test_a_source_that_finds_nobody_says_so(api, open_page, picture, plant):
    page = open_page(f"#/endpoints/sources?vhost={plant}", width=390, height=844)
    expect(page.get_by_text("No source")).to_be_visible()
    amqp = {"url": "amqp://127.0.0.1:1", "queue": "requests"}
    make(page, "source", "requests", {"from": {"amqp": amqp}, "to": {"queue": "in"}})
    wrong = page.get_by_role("region", name="Last error")
    expect(wrong).to_contain_text("127.0.0.1:1 does not answer: Connection refused")
    accessible(page)
    picture(page, "source-phone")
    page.get_by_role("link", name="Sources").click()
    expect(page.get_by_role("table", name="Sources").get_by_text("down").or_(page.get_by_text("connecting"))).to_be_visible()
    accessible(page)

"""Routes at the page: written, refused, set, watched, tried, taken back."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

ALERTS = "FROM /messages/modules/camera/outputs/* WHERE severity = 'high' INTO $upstream"
MANIFEST = {
    "schemaVersion": "1.1",
    "routes": {
        "alerts": {"route": ALERTS, "priority": 0, "timeToLiveSecs": 3_600},
        "lost": {"route": 'FROM /orders INTO Endpoint("lost")', "fallback": True},
        "telemetry": "FROM /messages/* INTO $upstream",
    },
}
CAMERA = "/messages/modules/camera/outputs/alerts"


@pytest.fixture
def plant(api, request):
    """A virtual host of its own."""
    name = request.node.name.replace("_", "-")[5:40]
    api("PUT", f"/v1/vhosts/{name}", {})
    yield name
    api("DELETE", f"/v1/vhosts/{name}")


def confirm(page, verb):
    """Says yes to the question."""
    page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()


def tab(page, name):
    """One of the views of routes."""
    return page.get_by_role("navigation", name="Views of routes").get_by_role("link", name=name)


def manifest(page):
    """The editor."""
    return page.get_by_role("textbox", name="Manifest")


def route(page, name):
    """The row of a route."""
    return page.get_by_role("table", name="Routes").get_by_role("row").filter(has_text=name)


def cell(row, label):
    """What stands in a row under a label."""
    return row.locator(f"[data-label={label}]")


def figure(page, label):
    """One of the numbers at the top."""
    return page.locator(".figure").filter(has_text=label).locator(".value")


def verdict(page, name):
    """What a route says to the message that is tried."""
    return page.locator(".verdicts li").filter(has_text=name)


def accessible(page):
    """What axe finds in what is seen only after something was done."""
    found = Axe().run(page).response["violations"]
    assert found == [], [(one["id"], one["nodes"][0]["html"]) for one in found]


def test_routes_are_written_refused_set_watched_and_taken_back(api, open_page, picture, plant):
    page = open_page("#/")
    page.seen.expected.append("422")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.get_by_role("heading", name="Routes", exact=True).first).to_be_visible()
    page.get_by_label("Virtual host").select_option(plant)
    expect(page.get_by_text("No routes")).to_be_visible()
    accessible(page)
    picture(page, "routes-none")
    page.get_by_role("button", name="Load it into the editor").click()
    expect(manifest(page)).to_have_value(re.compile("FROM /messages/"))

    # What is wrong is shown where it is: carets stand beneath it.
    wrong = {"routes": {"alerts": ALERTS.replace("=", "==")}}
    manifest(page).fill(json.dumps(wrong))
    page.get_by_role("button", name="Check").click()
    told = page.get_by_role("alert").locator("pre")
    expect(told).to_contain_text("/routes/alerts: there is no operator `==`")
    lines = told.inner_text().split("\n")
    assert lines[1].index("==") == lines[2].index("^^"), lines
    accessible(page)
    picture(page, "routes-refused")

    manifest(page).fill(json.dumps(MANIFEST, indent=2))
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("It holds.")).to_be_visible()
    assert api("GET", f"/v1/routes?vhost={plant}")["routes"] == []
    page.get_by_role("button", name="Apply …").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"+ alerts: {ALERTS}, priority 0")
    accessible(page)
    picture(page, "routes-asked")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Apply …")).to_be_focused()
    page.keyboard.press("Enter")
    confirm(page, "Apply")
    expect(page.get_by_text("The routes are set: 3 changes.")).to_be_visible()

    # What comes is counted, and copies stand in the lanes of endpoints.
    tab(page, "Routes").click()
    names = page.get_by_role("table", name="Routes").locator("[data-label=Name] b")
    expect(names).to_have_text(["alerts", "lost", "telemetry"])
    expect(cell(route(page, "alerts"), "Lives")).to_contain_text("1 h")
    expect(figure(page, "Came")).to_have_text("0")
    for severity in ["high", "high", "high", "low"]:
        api("POST", f"/v1/topics{CAMERA}?vhost={plant}", {"body": "x", "headers": {"severity": severity}})
    api("POST", f"/v1/topics{CAMERA}?vhost={plant}", {"body": "x"})
    api("POST", f"/v1/topics/orders?vhost={plant}", {"body": "x"})
    api("POST", f"/v1/topics/elsewhere?vhost={plant}", {"body": "x"})
    expect(figure(page, "Came")).to_have_text("7")
    expect(figure(page, "Unrouted")).to_have_text("1")
    expect(figure(page, "By fallback")).to_have_text("1")
    for label, number in {"Matched": "3", "Undefined": "1", "Copies": "3"}.items():
        expect(cell(route(page, "alerts"), label)).to_have_text(number)
    expect(cell(route(page, "telemetry"), "Matched")).to_have_text("5")
    upstream = page.get_by_role("region", name="Endpoints").get_by_role("link").filter(has_text="$upstream")
    expect(upstream.locator(".chips")).to_contain_text("Pri03")
    expect(upstream.locator(".chips")).to_contain_text("no priority2")
    api("POST", f"/v1/queues/%24upstream/leases?vhost={plant}", {"max": 1, "wait_ms": 10_000})
    expect(upstream.get_by_role("img")).to_have_accessible_name("1 Pri0 running, 2 Pri0 waiting, 2 no priority waiting")
    accessible(page)
    picture(page, "routes-watched")

    # A route is taken away by mistake.
    before = api("GET", f"/v1/routes/manifest?vhost={plant}")
    tab(page, "Edit").click()
    manifest(page).fill(json.dumps({"routes": {"telemetry": MANIFEST["routes"]["telemetry"]}}))
    page.get_by_role("button", name="Apply …").click()
    expect(page.get_by_role("dialog")).to_contain_text("- alerts")
    confirm(page, "Apply")
    expect(page.get_by_text("The routes are set: 2 changes.")).to_be_visible()
    assert list(api("GET", f"/v1/routes/manifest?vhost={plant}")["routes"]) == ["telemetry"]
    page.get_by_role("button", name="Undo").last.click()
    expect(page.get_by_text("Undone.")).to_be_visible()
    assert api("GET", f"/v1/routes/manifest?vhost={plant}") == before
    tab(page, "Routes").click()
    expect(names).to_have_text(["alerts", "lost", "telemetry"])
    upstream.click()
    expect(page.get_by_role("heading", name="$upstream")).to_be_visible()


def test_a_message_is_tried_and_not_published(api, open_page, picture, plant):
    api("PUT", f"/v1/routes?vhost={plant}", MANIFEST)
    page = open_page(f"#/routes/try?vhost={plant}")
    done = page.get_by_role("region", name="What would be done")
    page.get_by_label("Path").fill(CAMERA)
    page.get_by_role("button", name="Try it").click()
    expect(done.get_by_role("heading", name="1 copy")).to_be_visible()
    expect(page.get_by_role("button", name="Try it")).to_be_focused()
    expect(verdict(page, "alerts")).to_contain_text("undefined")
    expect(verdict(page, "alerts")).to_contain_text("property severity is not there")
    page.get_by_label("Headers").fill("severity: high")
    page.get_by_role("button", name="Try it").click()
    expect(verdict(page, "alerts")).to_contain_text("matches")
    expect(verdict(page, "telemetry")).to_contain_text("its queue gets one already")
    line = done.get_by_role("table", name="Copies").get_by_role("row").nth(1)
    for label, said in {"Queue": "$upstream", "Route": "alerts", "Priority": "0", "Lives": "1 h"}.items():
        expect(cell(line, label)).to_have_text(said)
    expect(done.get_by_text("1 route is for messages from elsewhere.")).to_be_visible()
    done.get_by_role("button", name="Show").click()
    expect(verdict(page, "lost")).to_contain_text("from elsewhere")
    accessible(page)
    picture(page, "routes-tried")

    # What is being written can be tried before it is set.
    tab(page, "Edit").click()
    expect(manifest(page)).to_have_value(json.dumps(api("GET", f"/v1/routes/manifest?vhost={plant}"), indent=2))
    other = {"routes": {"all": {"route": 'FROM /* WHERE $body.level > 2 INTO Endpoint("all")', "priority": 4}}}
    manifest(page).fill(json.dumps(other))
    page.get_by_role("button", name="Try a message").click()
    expect(page.get_by_role("button", name="as edited")).to_have_attribute("aria-pressed", "true")
    page.get_by_label("Body").fill('{"level": 3}')
    page.get_by_role("button", name="Try it").click()
    expect(cell(done.get_by_role("table", name="Copies").get_by_role("row").nth(1), "Queue")).to_have_text("all")
    expect(verdict(page, "all")).to_contain_text("$body.level is 3")
    page.get_by_role("button", name="as they are").click()
    page.get_by_role("button", name="Try it").click()
    expect(verdict(page, "alerts")).to_contain_text("matches")
    assert api("GET", f"/v1/routes?vhost={plant}")["published"] == 0


def test_a_manifest_is_written_in_toml(api, open_page, plant):
    api("PUT", f"/v1/routes?vhost={plant}", MANIFEST)
    page = open_page(f"#/routes/edit?vhost={plant}")
    page.get_by_role("button", name="As TOML").click()
    expect(page.get_by_role("heading", name="Manifest")).to_contain_text("TOML")
    assert "[routes.alerts]\n" in manifest(page).input_value()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("It holds, and nothing changes")).to_be_visible()
    manifest(page).fill(manifest(page).input_value().replace("priority = 0", "priority = 2"))
    page.get_by_role("button", name="Apply …").click()
    expect(page.get_by_role("dialog")).to_contain_text("priority: 0 → 2")
    confirm(page, "Apply")
    expect(page.get_by_text("The routes are set: 1 change.")).to_be_visible()
    # What was written stays as it was written.
    expect(page.locator("h2 .badge")).to_have_text(["TOML", "set"])
    assert "priority = 2" in manifest(page).input_value()
    assert api("GET", f"/v1/routes/manifest?vhost={plant}")["routes"]["alerts"]["priority"] == 2


def test_a_queue_that_is_gone_is_told(api, open_page, plant):
    manifest_of = {"routes": {"audit": {"route": 'FROM /* INTO Queue("audited")', "priority": 1}}}
    page = open_page(f"#/routes/edit?vhost={plant}")
    page.seen.expected.append("404")
    manifest(page).fill(json.dumps(manifest_of))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_contain_text("/routes/audit: no queue `audited` in vhost")
    api("PUT", f"/v1/queues/audited?vhost={plant}", {"scheme": "named"})
    page.get_by_role("button", name="Apply …").click()
    confirm(page, "Apply")
    tab(page, "Routes").click()
    expect(route(page, "audit")).to_be_visible()
    expect(page.get_by_role("region", name="Needs attention")).to_have_count(0)
    api("DELETE", f"/v1/queues/audited?vhost={plant}")
    expect(page.get_by_role("region", name="Needs attention")).to_contain_text("audited: the queue is not there; copies for it are left out.")
    expect(route(page, "audit")).to_contain_text("leads nowhere")
    # What would not be taken again is not offered as a way back.
    tab(page, "Edit").click()
    manifest(page).fill(json.dumps(MANIFEST))
    page.get_by_role("button", name="Apply …").click()
    expect(page.get_by_role("dialog")).to_contain_text("Cannot be undone")
    confirm(page, "Apply")
    last = page.locator(".toast").filter(has_text="The routes are set: 4 changes.")
    expect(last).to_be_visible()
    expect(last.get_by_role("button", name="Undo")).to_have_count(0)


def test_who_sets_no_policies_is_offered_no_editor(api, open_page, plant):
    api("PUT", f"/v1/routes?vhost={plant}", MANIFEST)
    api("PUT", "/v1/users/mo", {"password": "secret", "tags": ["management"]})
    api("PUT", f"/v1/users/mo/permissions/{plant}", {"configure": "", "write": "", "read": "^lost$"})
    page = open_page(f"#/routes/edit?vhost={plant}", user="mo", password="secret")
    expect(route(page, "alerts")).to_be_visible()
    expect(tab(page, "Edit")).to_have_count(0)
    # What one may not see is no alarm.
    expect(page.get_by_role("region", name="Endpoints")).to_contain_text("You may not see it, or it is not there.")
    expect(page.get_by_role("region", name="Needs attention")).to_have_count(0)
    tab(page, "Try a message").click()
    page.get_by_label("Path").fill("/orders")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_text("by fallback only")).to_be_visible()
    api("DELETE", "/v1/users/mo")

"""Every view, in light and dark, on a desk and in a hand: nothing that axe finds, nothing wider than the screen, and a picture."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

VIEWS = {
    "overview": "#/",
    "queue": "#/queue/%2F/views",
    "message": "#/queue/%2F/views/messages/first",
    "lanes": "#/queue/%2F/views/lanes",
    "time": "#/queue/%2F/views/time",
    "consumers": "#/queue/%2F/views/consumers",
    "settings": "#/queue/%2F/views/settings",
    "executions": "#/executions?queue=views",
    "schedules": "#/schedules",
    "clients": "#/clients",
    "topology": "#/topology",
    "routes": "#/routes",
    "routes-try": "#/routes/try",
    "routes-edit": "#/routes/edit",
    "endpoints": "#/endpoints",
    "endpoint": "#/endpoints/endpoints/views",
    "sources": "#/endpoints/sources",
    "users": "#/admin/users",
    "tokens": "#/admin/tokens",
    "vhosts": "#/admin/vhosts",
    "policies": "#/admin/policies",
    "audit": "#/admin/audit",
    "nowhere": "#/nowhere",
}


@pytest.fixture(scope="module", autouse=True)
def something_to_see(api):
    """A queue with something in each state, an exchange bound to it, a schedule, routes, one of which leads nowhere, an endpoint."""
    api("PUT", "/v1/endpoints/views", {"queue": "views.sent", "to": {"webhook": {"url": "http://127.0.0.1:1/"}}})
    api.queue("views.history", scheme="named", order="fifo")
    api.queue("views", scheme="named", history="views.history", max_active=5)
    body = '{"order": 7, "lines": [1, 2.5, null, true], "note": "hello"}'
    api.publish("views", {"id": "first", "body": body, "content_type": "application/json", "priority": "critical", "key": "k", "headers": {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}})
    words = ["critical", "high", "normal", "low", "background"]
    api.publish("views", *({"id": f"{word}-{at}", "body": "x", "priority": word} for word in words for at in range(7)))
    api.publish("views", {"id": "later", "body": "x", "delay_ms": 3_600_000})
    done, *running = api.lease("views", 4)[1:]
    api.settle("views", [done], "ack", report={"exit_code": 0, "output": "done\n"})
    assert running
    api("PUT", "/v1/exchanges/orders", {"kind": "topic"})
    api("PUT", "/v1/exchanges/audit", {"kind": "fanout"})
    api("POST", "/v1/exchanges/orders/bindings", {"queue": "views", "routing_key": "order.*"})
    api("POST", "/v1/exchanges/orders/bindings", {"to_exchange": "audit", "routing_key": "#"})
    api("POST", "/v1/exchanges/audit/bindings", {"queue": "views.history"})
    api("PUT", "/v1/schedules/nightly", {"queue": "views", "cron": "0 3 * * *", "message": {"body": "x"}})
    for name in ["views.orders", "views.gone"]:
        api.queue(name, scheme="named")
    alerts = "FROM /messages/modules/camera/outputs/* WHERE severity = 'high' AND as_number(temperature) > 30 INTO $upstream"
    routes = {
        "alerts": {"route": alerts, "priority": 0, "timeToLiveSecs": 86_400},
        "archive": {"route": 'FROM /messages/* INTO BrokeredEndpoint("/modules/archive/inputs/all")', "priority": 7},
        "audit": {"route": 'FROM /messages/* INTO Queue("views.gone")', "priority": 9},
        "orders": {"route": 'FROM /orders WHERE $body.total > 1000 INTO Queue("views.orders")', "priority": 3},
        "telemetry": "FROM /messages/* INTO $upstream",
        "lost": {"route": 'FROM /* INTO Endpoint("lost")', "fallback": True},
    }
    api("PUT", "/v1/routes", {"routes": routes, "storeAndForwardConfiguration": {"timeToLiveSecs": 7_200}})
    api("DELETE", "/v1/queues/views.gone")
    for severity in ["high", "low", "low"]:
        api("POST", "/v1/topics/messages/modules/camera/outputs/alerts", {"body": "x", "headers": {"severity": severity, "temperature": "31"}})
    api("POST", "/v1/topics/orders", {"body": '{"total": 5000}', "content_type": "application/json"})
    api("POST", "/v1/topics/elsewhere", {"body": "x"})


def settled(page):
    """The view is there, with what it asked for."""
    expect(page.locator("main")).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    expect(page.get_by_text("Looking …")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page, picture, scheme, http):
    page = open_page(scheme=scheme)
    found = []
    for name, path in VIEWS.items():
        if name in ["executions", "message"]:
            page.seen.expected.append("404")
        page.goto(f"{http}/{path}")
        settled(page)
        picture(page, f"{name}-{scheme}")
        result = Axe().run(page)
        for one in result.response["violations"]:
            nodes = [node["html"][:160] + " " + node["failureSummary"][:200] for node in one["nodes"][:3]]
            found.append(f"{name}: {one['id']} ({one['impact']}): {nodes}")
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(open_page, picture, scheme, http):
    page = open_page(scheme=scheme, width=390, height=844)
    for name, path in VIEWS.items():
        page.goto(f"{http}/{path}")
        settled(page)
        picture(page, f"{name}-phone-{scheme}")
        wide = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{name} is {wide} pixels too wide"


def test_windows_hold_the_keyboard_and_give_it_back(open_page):
    page = open_page()
    opener = page.get_by_role("button", name="New queue").first
    opener.focus()
    page.keyboard.press("Enter")
    window = page.get_by_role("dialog")
    expect(window.get_by_label("Name", exact=True)).to_be_visible()
    found = Axe().run(page).response["violations"]
    assert found == [], [one["id"] for one in found]
    for _ in range(20):
        page.keyboard.press("Tab")
        inside = page.evaluate("Boolean(document.activeElement.closest('dialog')) || document.activeElement === document.body")
        assert inside
    page.keyboard.press("Escape")
    expect(window).to_have_count(0)
    expect(opener).to_be_focused()

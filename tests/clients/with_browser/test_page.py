"""What somebody does at the page: log in, publish, watch it overtake, reprioritise, cancel, replay, be refused."""

import re

from playwright.sync_api import expect


def rows(page):
    """The messages that are shown."""
    return page.locator(".message-row")


def row(page, message):
    """One of them."""
    return rows(page).filter(has_text=message)


def confirm(page, verb):
    """Says yes to the question."""
    page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()


FIGURE_IS_AT_LEAST = """([label, least]) => [...document.querySelectorAll(".figure")]
    .filter((figure) => figure.textContent.includes(label))
    .some((figure) => Number(figure.querySelector(".value").textContent.replace(/\\D/g, "")) >= least)"""


def figure(page, label):
    """One of the numbers at the top of the overview."""
    return page.locator(".figure").filter(has_text=label).locator(".value")


def test_wrong_password_is_told_and_a_right_one_lets_in(open_page, picture):
    page = open_page(user=None)
    picture(page, "login")
    page.get_by_label("User").fill("guest")
    page.get_by_label("Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("the user or the password is wrong")
    page.get_by_label("Password", exact=True).fill("guest")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()


def test_a_token_logs_in(api, open_page):
    token = api("POST", "/v1/tokens", {"label": "page", "tags": ["monitoring"]})["secret"]
    page = open_page(user=None)
    page.get_by_role("button", name="Token").click()
    page.get_by_label("Token", exact=True).last.fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_urgent_work_overtakes_bulk_work_as_one_watches(api, open_page, picture):
    queue = api.queue("overtaking", scheme="named")
    api.publish(queue, *({"id": f"bulk-{at}", "body": "bulk", "priority": "background"} for at in range(30)))
    page = open_page(f"#/queue/%2F/{queue}")
    expect(rows(page).first).to_contain_text("bulk-0")
    page.get_by_role("button", name="Publish").click()
    window = page.get_by_role("dialog")
    window.get_by_label("Body").fill('{"pay": 12}')
    window.get_by_label("Priority").select_option("critical")
    window.get_by_role("button", name="Key, id").click()
    window.get_by_label("Id").fill("urgent")
    window.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("urgent is in overtaking, as critical; it goes next.")).to_be_visible()
    expect(rows(page).first).to_contain_text("urgent")
    expect(page.locator(".chips")).to_contain_text("critical")
    row(page, "urgent").click()
    detail = page.get_by_role("region", name="Message", exact=True)
    expect(detail).to_contain_text("goes next")
    expect(detail.locator("pre").first).to_contain_text('"pay": 12')
    detail.get_by_role("button", name="Hex").click()
    expect(detail.locator("pre").first).to_contain_text("7b 22 70 61 79")
    picture(page, "overtaking")
    assert [one["id"] for one in api.lease(queue)] == ["urgent"]


def test_the_order_of_publishing_is_shown_too(api, open_page):
    queue = api.queue("orders", scheme="named")
    api.publish(queue, *({"id": f"{word}", "body": "x", "priority": word} for word in ["low", "critical", "normal"]))
    page = open_page(f"#/queue/%2F/{queue}")
    ids = page.locator(".message-row a.mono")
    expect(ids).to_have_text(["critical", "normal", "low"])
    page.get_by_role("button", name="As they came").click()
    expect(ids).to_have_text(["low", "critical", "normal"])
    page.get_by_role("button", name="Newest first").click()
    expect(ids).to_have_text(["normal", "critical", "low"])


def test_what_is_asked_for_is_shown(api, open_page):
    queue = api.queue("filters", scheme="named")
    api.publish(
        queue,
        {"id": "a", "body": "x", "priority": "high", "key": "k1", "headers": {"source": "shop"}},
        {"id": "b", "body": "x", "priority": "low", "key": "k1", "user_id": "guest"},
        {"id": "c", "body": "x", "priority": "low", "key": "k2", "headers": {"source": "cron"}},
    )
    page = open_page(f"#/queue/%2F/{queue}")
    ids = page.locator(".message-row a.mono")
    expect(ids).to_have_text(["a", "b", "c"])
    page.get_by_label("Key", exact=True).fill("k1")
    expect(ids).to_have_text(["a", "b"])
    page.get_by_label("User", exact=True).fill("guest")
    expect(ids).to_have_text(["b"])
    page.get_by_role("button", name="Clear").click()
    expect(ids).to_have_text(["a", "b", "c"])
    page.get_by_label("Header", exact=True).fill("source: cron")
    expect(ids).to_have_text(["c"])
    page.reload()
    expect(ids).to_have_text(["c"])
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Priority", exact=True).select_option("low")
    expect(ids).to_have_text(["b", "c"])
    page.get_by_label("Key", exact=True).fill("none")
    expect(page.get_by_text("Nothing matches")).to_be_visible()


def test_a_message_is_raised_and_lowered_and_taken_back(api, open_page):
    queue = api.queue("raising", scheme="named")
    api.publish(queue, {"id": "first", "body": "x", "priority": "normal"}, {"id": "second", "body": "x", "priority": "low"})
    page = open_page(f"#/queue/%2F/{queue}/messages/second")
    page.get_by_role("button", name="↑ Raise").click()
    expect(page.get_by_text("second is normal now.")).to_be_visible()
    page.get_by_role("button", name="Priority …").click()
    page.get_by_role("dialog").get_by_label("Priority").select_option("critical")
    confirm(page, "Change")
    expect(page.locator(".message-row a.mono")).to_have_text(["second", "first"])
    page.get_by_role("button", name="Undo").last.click()
    expect(page.get_by_text("Undone.")).to_be_visible()
    expect(page.locator(".message-row a.mono")).to_have_text(["first", "second"])
    assert api.ids(queue) == ["first", "second"]


def test_many_are_chosen_by_keyboard_and_changed_together(api, open_page):
    queue = api.queue("keyboard", scheme="named")
    api.publish(queue, *({"id": f"m{at}", "body": "x", "priority": "low"} for at in range(5)))
    page = open_page(f"#/queue/%2F/{queue}")
    expect(rows(page)).to_have_count(5)
    page.locator(".messages").focus()
    for key in ["j", "j", "x", "k", "x"]:
        page.keyboard.press(key)
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Message", exact=True)).to_contain_text("m1")
    page.locator(".messages").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Message", exact=True)).to_have_count(0)
    page.locator(".bulk").get_by_role("button", name="Reprioritise").click()
    page.get_by_role("dialog").get_by_label("Priority").select_option("critical")
    confirm(page, "Change")
    expect(page.get_by_text("2 messages now critical.")).to_be_visible()
    assert api.ids(queue) == ["m1", "m2", "m0", "m3", "m4"]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone.")).to_be_visible()
    assert api.ids(queue) == ["m0", "m1", "m2", "m3", "m4"]
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_all_that_match_are_changed_only_as_many_as_were_shown(api, open_page):
    queue = api.queue("counted", scheme="named")
    api.publish(queue, *({"id": f"m{at}", "body": "x", "priority": "low", "headers": {"shop": "7"}} for at in range(3)))
    # A header without its value yet matches nothing, and changes nothing.
    page = open_page(f"#/queue/%2F/{queue}?header=shop")
    page.seen.expected.append("409")
    expect(page.get_by_text("Give the header its value to change all that match.")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel the")).to_have_count(0)
    page = open_page(f"#/queue/%2F/{queue}?header=shop%3D7")
    page.seen.expected.append("409")
    page.get_by_role("button", name="Cancel the 3 that match").click()
    api.publish(queue, {"id": "late", "body": "x", "priority": "low", "headers": {"shop": "7"}})
    confirm(page, "Cancel them")
    expect(page.locator(".toasts")).to_contain_text("4 messages are selected, and another number was expected")
    assert api.ids(queue) == ["m0", "m1", "m2", "late"]


def test_work_is_cancelled_and_done_again(api, open_page):
    api.queue("work.history", scheme="named", order="fifo")
    queue = api.queue("work", scheme="named", history="work.history")
    api.publish(queue, {"id": "report", "body": "x", "priority": "high"})
    page = open_page(f"#/queue/%2F/{queue}/messages/report")
    page.seen.expected.append("404")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("It is in work.history then")
    confirm(page, "Cancel it")
    expect(page.get_by_text("It is not in this queue any more")).to_be_visible()
    page.get_by_role("link", name="work.history", exact=True).click()
    expect(page.get_by_role("region", name="Message", exact=True)).to_contain_text("cancelled")
    page.get_by_role("button", name="Do it again").click()
    confirm(page, "Replay")
    expect(page.get_by_text("1 message replayed.")).to_be_visible()
    assert api.ids(queue) == ["report"]


def test_dead_letters_are_looked_at_and_replayed(api, open_page, picture):
    queue = api.queue("failing", scheme="named", delivery_limit=1)
    api.publish(queue, {"id": "bad", "body": "x", "priority": "normal"})
    api.settle(queue, api.lease(queue), "reject")
    page = open_page("#/")
    expect(page.locator(".queue-row", has_text="failing")).to_contain_text("1 dead")
    page.goto(page.url.split("#")[0] + f"#/queue/%2F/{queue}?status=dead")
    expect(row(page, "bad")).to_contain_text("rejected")
    row(page, "bad").click()
    expect(page.get_by_role("region", name="Message", exact=True)).to_contain_text("died in this queue")
    picture(page, "dead-letter")
    page.get_by_role("button", name="Replay", exact=True).click()
    page.get_by_role("dialog").get_by_label("Priority").select_option("critical")
    confirm(page, "Replay")
    expect(page.get_by_text("1 message replayed.")).to_be_visible()
    assert api.ids(queue, status="ready", priority="critical") == ["bad"]


def test_a_queue_is_paused_capped_and_purged(api, open_page):
    queue = api.queue("steered", scheme="named")
    api.publish(queue, *({"body": "x"} for _ in range(3)))
    page = open_page(f"#/queue/%2F/{queue}")
    page.get_by_role("button", name="Pause").click()
    confirm(page, "Pause")
    expect(page.locator("h1 .badge")).to_have_text("paused")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("h1 .badge")).to_have_count(0)
    page.get_by_role("button", name="Cap …").click()
    page.get_by_label("At most").fill("2")
    confirm(page, "Change")
    expect(page.get_by_text("0 of 2 running")).to_be_visible()
    assert api("GET", f"/v1/queues/{queue}")["settings"]["max_active"] == 2
    page.get_by_role("button", name="Purge").click()
    purge = page.get_by_role("dialog").get_by_role("button", name="Purge", exact=True)
    expect(purge).to_be_disabled()
    page.get_by_label(re.compile("To be sure")).fill(queue)
    purge.click()
    expect(page.get_by_text("3 messages removed from steered.")).to_be_visible()
    assert api.ids(queue) == []


def test_the_overview_moves(api, open_page):
    queue = api.queue("moving", scheme="named")
    page = open_page(f"#/?name={queue}")
    line = page.locator(".queue-row", has_text=queue)
    expect(line).to_contain_text("0/s")
    before = int(re.sub(r"\D", "", figure(page, "Waiting").inner_text()))
    api.publish(queue, *({"body": "x", "priority": "high"} for _ in range(500)))
    expect(line.locator(".chips")).to_contain_text("high500")
    # Queues of other tests have their own comings and goings.
    page.wait_for_function(FIGURE_IS_AT_LEAST, arg=["Waiting", before + 500])
    expect(page.locator(".trouble-row", has_text=queue)).to_contain_text("nobody takes them")
    api.lease(queue, 200)
    expect(line.locator(".chips")).to_contain_text("high300")


def test_levels_of_routes_have_their_colours(api, open_page):
    queue = api.queue("hot-and-cold", scheme="route")
    api.publish(queue, {"body": "x", "priority": 0}, {"body": "x", "priority": 9}, {"body": "x"})
    page = open_page(f"#/?name={queue}")
    dots = page.locator(".queue-row", has_text=queue).locator(".chips .dot")
    expect(dots).to_have_count(3)
    colours = dots.evaluate_all("dots => dots.map((dot) => dot.style.getPropertyValue('--lane'))")
    assert colours[0] == "oklch(0.630 0.220 25.0)"
    assert len(set(colours)) == 3, colours


def test_who_may_not_is_offered_nothing(api, api_as, open_page, picture):
    queue = api.queue("open-to-ann", scheme="named", delivery_limit=1)
    api.queue("closed-to-ann")
    api.publish(queue, {"id": "seen", "body": "x"})
    api("PUT", "/v1/users/ann", {"password": "secret"})
    api("PUT", "/v1/users/ann/permissions/%2F", {"configure": "", "write": "", "read": f"^{queue}$"})
    page = open_page(f"#/queue/%2F/{queue}/messages/seen", user="ann", password="secret")
    expect(page.get_by_role("button", name="Remove")).to_be_visible()
    for what in ["Publish", "Pause", "Cap …", "Priority …", "↑ Raise"]:
        expect(page.get_by_role("button", name=what, exact=True)).to_have_count(0)
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".queue-row", has_text=queue)).to_be_visible()
    expect(page.locator(".queue-row", has_text="closed-to-ann")).to_have_count(0)
    for place in ["Executions", "Clients"]:
        expect(page.get_by_role("link", name=place)).to_have_count(0)
    picture(page, "as-ann")
    page.seen.expected.append("403")
    page.goto(page.url.split("#")[0] + "#/queue/%2F/closed-to-ann")
    expect(page.get_by_role("alert")).to_contain_text("refused for user 'ann'")
    # Who is deleted meanwhile is out.
    api("DELETE", "/v1/users/ann")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()


def test_a_user_is_made_given_rights_and_deleted(api, open_page):
    page = open_page("#/admin/users")
    page.get_by_role("button", name="New user").click()
    page.get_by_label("Name", exact=True).fill("bea")
    page.get_by_label("Password", exact=True).fill("secret")
    confirm(page, "Make")
    line = page.get_by_role("row").filter(has_text="bea")
    expect(line).to_contain_text("may enter nowhere")
    line.get_by_role("button", name="Rights").click()
    page.get_by_label("May declare and delete").fill("")
    confirm(page, "Set")
    expect(line).to_contain_text("configure nothing, write .*, read .*")
    line.get_by_role("button", name="Delete").click()
    page.get_by_label(re.compile("To be sure")).fill("bea")
    confirm(page, "Delete")
    expect(line).to_have_count(0)
    page.get_by_role("link", name="What was done").click()
    expect(page.get_by_role("row").filter(has_text="bea").first).to_be_visible()


def test_a_policy_a_schedule_and_a_queue_are_made(api, open_page):
    page = open_page("#/")
    page.get_by_role("button", name="New queue").click()
    page.get_by_label("Name", exact=True).fill("made-here")
    confirm(page, "Make it")
    expect(page.get_by_role("heading", name="made-here")).to_be_visible()
    page.get_by_role("link", name="Schedules").click()
    page.get_by_role("button", name="New schedule").click()
    page.get_by_label("Name", exact=True).fill("nightly")
    page.get_by_label("Queue", exact=True).fill("made-here")
    page.get_by_label("When", exact=True).fill("0 3 * * *")
    confirm(page, "Make it")
    expect(page.get_by_role("row").filter(has_text="nightly")).to_contain_text("0 3 * * *")
    page.get_by_role("link", name="Admin").click()
    page.get_by_role("link", name="Policies").click()
    page.get_by_role("button", name="New policy").click()
    page.get_by_label("Name", exact=True).fill("short")
    page.get_by_label("Names that match").fill("^made-")
    confirm(page, "Make it")
    expect(page.get_by_role("row").filter(has_text="short")).to_contain_text("max-length")
    assert api("GET", "/v1/queues/made-here")["effective_settings"]["max_length"] == 10_000
    page.get_by_role("button", name="Undo").last.click()
    expect(page.get_by_text("Undone.")).to_be_visible()
    assert api("GET", "/v1/queues/made-here").get("policy") is None


def test_an_execution_is_followed_to_its_end(api, open_page, picture):
    api.queue("exec.history", scheme="named", order="fifo")
    queue = api.queue("exec", scheme="named", history="exec.history", max_active=2)
    api.publish(queue, {"id": "build", "body": "make", "priority": "high", "user_id": "guest"})
    page = open_page(f"#/executions/build?queue={queue}")
    one = page.get_by_role("region", name="Execution", exact=True)
    expect(one.locator(".badge").first).to_have_text("queued")
    leased = api.lease(queue, worker="builder-7")
    expect(one.locator(".badge").first).to_have_text("running")
    expect(one).to_contain_text("builder-7")
    receipts = [message["receipt"] for message in leased]
    for said in ["compiling\n", "compiling\nlinking\n"]:
        report = {"output": said}
        body = {"receipts": receipts, "visibility_timeout_ms": 60_000, "report": report}
        api("POST", f"/v1/queues/{queue}/extend", body)
        expect(one.locator("pre.output")).to_have_text(said)
    picture(page, "execution-live")
    api.settle(queue, leased, "ack", report={"exit_code": 0, "output": "compiled\nlinked\n"})
    expect(one.locator(".badge").first).to_have_text("completed")
    expect(one.locator("pre.output")).to_contain_text("linked")
    picture(page, "execution")
    one.get_by_role("button", name="Do it again").click()
    confirm(page, "Do it again")
    expect(one.locator(".badge").first).to_have_text("queued")


def test_a_message_shows_its_trace_and_its_properties(api, open_page):
    queue = api.queue("traced", scheme="named")
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    api.publish(queue, {"id": "traced", "body": "x", "headers": {"traceparent": parent}, "content_type": "text/x-note"})
    page = open_page(f"#/queue/%2F/{queue}/messages/traced")
    detail = page.get_by_role("region", name="Message", exact=True)
    expect(detail).to_contain_text("4bf92f3577b34da6a3ce929d0e0e4736")
    expect(detail).to_contain_text("text/x-note")


def test_a_hundred_thousand_messages_stay_quick(api, open_page):
    queue = api.queue("many", order="fifo")
    api.publish(queue, *({"body": "x"} for _ in range(100_000)))
    page = open_page(f"#/queue/%2F/{queue}")
    expect(rows(page).first).to_contain_text("seq-1")
    # The list grows as one looks further down, and draws only what is in sight.
    page.evaluate(
        """async () => {
            const list = document.querySelector('.messages');
            while (list.scrollHeight < 44 * 5000) {
                list.scrollTop = list.scrollHeight;
                await new Promise(requestAnimationFrame);
            }
        }"""
    )
    assert rows(page).count() < 100
    expect(page.get_by_text("Standing still while you look.")).to_be_visible()
    page.get_by_role("button", name="To the newest state").click()
    expect(rows(page).first).to_contain_text("seq-1")


def test_a_broker_that_is_away_is_told_and_comes_back(api, open_page):
    api.queue("patience")
    page = open_page("#/")
    page.seen.expected += ["ERR_FAILED", "Failed to load"]
    page.route("**/v1/**", lambda route: route.abort())
    page.get_by_label("Order").select_option("name")
    expect(page.get_by_role("alert")).to_contain_text("The broker does not answer")
    page.unroute("**/v1/**")
    expect(page.get_by_text("The broker does not answer")).to_have_count(0)


def test_a_look_that_takes_many_requests_shows_how_far_it_is_and_can_be_stopped(api, open_page, picture):
    queue = api.queue("searched", order="fifo")
    api.publish(queue, *({"body": "x", **({"key": "acme"} if at % 1_000 == 500 else {})} for at in range(3_000)))
    page = open_page(f"#/queue/%2F/{queue}")
    expect(rows(page).first).to_contain_text("seq-1")
    # So a request looks at a few messages, as at a part of a deep queue; and the seventh waits until it is let go on.
    asked, held = [], []

    def look(route):
        url = route.request.url
        if "key=acme" not in url:
            return route.continue_()
        asked.append(url)
        if len(asked) == 7:
            return held.append(route)
        return route.continue_(url=url + "&looks=200")

    page.route("**/messages?*", look)
    page.get_by_role("searchbox", name="Key").fill("acme")
    bar = page.get_by_role("progressbar", name="Looked at")
    expect(page.get_by_text("Looked at 1,200 of 3,000 messages, 1 found")).to_be_visible()
    expect(bar).to_have_attribute("value", "1200")
    expect(rows(page)).to_have_count(1)
    expect(row(page, "seq-501")).to_be_visible()
    picture(page, "a look goes on")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: looked at 1,200 of 3,000 messages, 1 found")).to_be_visible()
    held.pop().continue_(url=asked[-1] + "&looks=200")
    expect(page.get_by_text("Stopped: looked at 1,400 of 3,000 messages, 1 found")).to_be_visible()
    page.get_by_role("button", name="Go on").click()
    expect(rows(page)).to_have_count(3)
    expect(bar).to_have_count(0)
    assert len(asked) >= 15

"""Every page in a browser, wide and narrow, light and dark: it fits, and axe finds nothing serious."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from browsing import Chromium
from exploring import Explored, exploring_sample, key_path, serious_findings, watched
from keywright.explorer.atlas import key_url, template_url
from keywright.testing.runs import Raw

MODELS = ["drc", "spectacles", "openmod", "registry", "meetup", "bookshop"]
SHOTS = os.environ.get("KEYWRIGHT_SHOTS")
"""A folder for screenshots of every page, for people to look at."""
CUT_OFF = """[...document.querySelectorAll('.scroll:has(table)')]
    .filter(part => part.offsetParent !== null && part.scrollWidth > part.clientWidth + 1)
    .map(part => part.getAttribute('aria-label'))"""
"""The tables that a person must scroll sideways."""


def pages_of(explored: Explored, model: str) -> dict[str, str]:
    """A page of each sort: the map, templates and keys of every kind, what is empty, what is missing."""
    found = {"start": "/", "map": "/map", "schema": "/schema", "audit": "/audit", "changes": "/changes"}
    if model == "drc":
        found |= {
            "operations": "/operations",
            "map-by-keys": "/map?by=keys",
            "schema-of-one": "/schema/drc-private",
            "search": "/search",
            "search-word": "/search?q=guild",
            "search-nothing": "/search?q=no-such-thing-anywhere",
            "missing-page": "/nowhere",
            "search-pattern": "/search?q=guilds*",
            "missing-key": key_path("keywright:v1json:guilds:5"),
            "table-filtered": "/template/drc/Message?col=type&op=eq&to=0&sort=timestamp&desc=1",
            "table-walked": "/template/drc/Member?cursor=0-0",
        }
    counted = explored.explorer.surveyor.latest.counted
    for kind, keys in counted.items():
        sheet = explored.explorer.atlas.sheets[kind]
        found.setdefault(f"template-{sheet.about.kind}", sheet.url)
        found.setdefault(f"key-{sheet.about.kind}", key_url(keys.names[0]))
        if explored.explorer.backlinks.sources(kind):
            found.setdefault("backlinks", key_url(keys.names[0]).replace("/key", "/key/backlinks", 1))
    empty = next((s for k, s in explored.explorer.atlas.sheets.items() if k not in counted), None)
    if empty is not None:
        found["template-empty"] = empty.url
    return found


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (390, True)], ids=["wide and light", "phone and dark"]
)
@pytest.mark.parametrize("model", MODELS)
def test_every_page_fits_and_axe_finds_nothing_serious(
    chromium: Chromium, redis_url: str, model: str, width: int, *, dark: bool
) -> None:
    with exploring_sample(redis_url, model) as explored:
        paths = pages_of(explored, model)

        async def visit(page: Any) -> list[str]:
            trouble: list[str] = []

            async def look(page: Any) -> None:
                for name, path in paths.items():
                    await page.goto(explored.base + path)
                    trouble.extend(f"{path}: {each}" for each in await serious_findings(page))
                    wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
                    if wider > 0:
                        trouble.append(f"{path}: {wider} pixels wider than the screen")
                    if width == 390 and (cut := await page.evaluate(CUT_OFF)):
                        trouble.append(f"{path}: a part of {cut} is not on the screen")
                    if SHOTS:
                        scheme = "dark" if dark else "light"
                        shot = Path(SHOTS) / f"{model}-{name}-{width}-{scheme}.png"
                        await page.screenshot(path=shot, full_page=True)

            return [*await watched(page, look), *trouble]

        assert chromium.visit(visit, width=width, dark=dark) == []


def test_long_names_and_many_findings_fit_on_a_phone(chromium: Chromium, redis_url: str, raw: Raw) -> None:
    for number in range(3):
        raw("SET", f"leftover:{number}:{'x' * 300}", "x")

    async def look(page: Any) -> dict[str, int]:
        await page.goto(explored.base + "/audit")
        await page.click("button:text-is('Start an audit')")
        await page.wait_for_selector("td a:has-text('Details')")
        found = {}
        for path in ("/audit", "/", "/map", key_path(f"leftover:1:{'x' * 300}")):
            await page.goto(explored.base + path)
            found[path] = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return found

    with exploring_sample(redis_url, "meetup") as explored:
        assert set(chromium.visit(look, width=390).values()) == {0}


def test_the_map_shows_every_template_with_its_count(chromium: Chromium, redis_url: str) -> None:
    async def rows(page: Any) -> dict[str, str]:
        await page.goto(explored.base + "/map")
        cells = await page.locator("table[data-keys] tbody tr").evaluate_all(
            "rows => rows.map(row => [row.cells[0].innerText, row.cells[3].innerText])"
        )
        bare = await page.locator("details[id^=bare] .what").all_text_contents()
        return {**dict(cells), **dict.fromkeys(bare, "0")}

    with exploring_sample(redis_url, "meetup") as explored:
        found = chromium.visit(rows)
    assert found["MeetupEvent"] == "40"
    assert found["ChannelOfSeries"] == "20"
    assert found["OrphanedRoles"] == "0"
    assert len(found) == len(explored.explorer.atlas.sheets)


def test_a_tile_of_the_treemap_leads_to_its_template(chromium: Chromium, redis_url: str) -> None:
    async def click(page: Any) -> str:
        await page.goto(explored.base + "/map")
        await page.click("svg.treemap a >> nth=0")
        return str(await page.inner_text("h1"))

    with exploring_sample(redis_url, "drc") as explored:
        heaviest = max(
            explored.explorer.surveyor.latest.counted.items(), key=lambda each: each[1].memory or 0
        )
        assert chromium.visit(click) == heaviest[0].__name__


def test_a_key_is_found_by_its_variables(chromium: Chromium, redis_url: str) -> None:
    async def find(page: Any) -> list[str]:
        await page.goto(explored.base + template_url("meetup", "MeetupEvent"))
        await page.fill("input[name=event]", "e17")
        await page.click("button:text-is('Find')")
        return [await page.inner_text("h1")]

    with exploring_sample(redis_url, "meetup") as explored:
        assert chromium.visit(find) == ["meetup_event:e17"]


def test_keys_are_found_by_some_of_their_variables(redis_url: str) -> None:
    with exploring_sample(redis_url, "drc") as explored:
        counted = explored.explorer.surveyor.latest.counted
        member = next(kind for kind in counted if kind.__name__ == "Member")
        guild = explored.explorer.atlas.key_of(counted[member].names[0])
        assert guild is not None
        wanted = guild._values[0]
        page = explored.get(f"{template_url('drc', 'Member')}?guild={wanted}").text
    names = {name.decode() for name in counted[member].names if f"members:{wanted}:".encode() in name}
    assert names
    assert all(f'href="/key?name={name}"' in page for name in names)
    assert page.count('<td><a class="row id" href="/key?name=keywright:v1json:members:') == len(names)
    assert page.index(">user</a></th>") < page.index(">guild</a></th>"), "what differs"


def test_a_key_that_could_not_exist_is_said_to_be_so(redis_url: str) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        page = explored.get(f"{template_url('meetup', 'DiscordUserOfMeetupUser')}?user=not-a-number")
    assert page.status_code == 200
    assert "&lt;user&gt; of &#39;meetup_user:&lt;user&gt;:discord_user&#39; must be" in page.text


def test_the_expiry_counts_down(chromium: Chromium, redis_url: str) -> None:
    async def watch(page: Any) -> tuple[str, str]:
        await page.goto(explored.base + key_path("csrf:c1"))
        first = await page.inner_text("[data-ttl]")
        await page.wait_for_function(
            "first => document.querySelector('[data-ttl]').innerText !== first", arg=first
        )
        return first, await page.inner_text("[data-ttl]")

    with exploring_sample(redis_url, "meetup") as explored:
        first, second = chromium.visit(watch)
    assert re.fullmatch(r"in 59 min \d+ s|in 58 min \d+ s|in 1 h", first)
    assert second != first


def test_an_expiry_that_has_passed_is_told_as_gone(chromium: Chromium, redis_url: str, raw: Raw) -> None:
    async def watch(page: Any) -> str:
        raw("PEXPIRE", "csrf:c1", "1500")
        await page.goto(explored.base + key_path("csrf:c1"))
        await page.wait_for_selector("dd:has([data-ttl]):has-text('gone')")
        return str(await page.inner_text("dd:has([data-ttl])"))

    with exploring_sample(redis_url, "meetup") as explored:
        assert chromium.visit(watch) == "gone"


def test_what_was_unfolded_stays_so_when_a_newer_survey_is_shown(
    chromium: Chromium, redis_url: str, raw: Raw
) -> None:
    raw("SET", "leftover:1", "x")

    async def watch(page: Any) -> bool:
        await page.goto(explored.base + "/map")
        await page.click("summary:text-is('Some of them')")
        await page.evaluate("document.activeElement.blur()")
        raw("SET", "leftover:2", "x")
        explored.explorer.db._loop.call_soon_threadsafe(explored.explorer.surveyor.hurry)
        await page.wait_for_selector("a:has-text('leftover:2')", state="attached")
        return bool(await page.is_visible("a:has-text('leftover:2')"))

    with exploring_sample(redis_url, "meetup") as explored:
        assert chromium.visit(watch)


def test_nothing_is_refreshed_while_it_is_focused_or_selected(
    chromium: Chromium, redis_url: str, raw: Raw
) -> None:
    async def watch(page: Any) -> list[bool]:
        await page.goto(explored.base + "/map")
        polled: list[str] = []
        page.on("request", lambda asked: polled.append(asked.url) if "/live" in asked.url else None)
        states = []
        for hold, release in (
            ("document.querySelector('main td a.row').focus()", "document.activeElement.blur()"),
            (
                "getSelection().selectAllChildren(document.querySelector('main td code'))",
                "getSelection().removeAllRanges()",
            ),
        ):
            await page.evaluate(hold)
            await page.wait_for_timeout(3500)  # longer than the pause between two polls
            held = len(polled)
            await page.evaluate(release)
            async with page.expect_request(lambda asked: "/live" in asked.url):
                pass
            states.append(held == 0)
            polled.clear()
        return states

    with exploring_sample(redis_url, "meetup") as explored:
        assert chromium.visit(watch) == [True, True]


def test_the_templates_are_filtered_by_a_word(chromium: Chromium, redis_url: str) -> None:
    async def filtered(page: Any) -> list[str]:
        await page.goto(explored.base + "/map")
        await page.keyboard.press("f")
        await page.keyboard.type("tokens")
        return list(await page.locator(".side li:visible").all_inner_texts())

    with exploring_sample(redis_url, "meetup") as explored:
        assert [each.split()[0] for each in chromium.visit(filtered)] == ["UserTokens", "UserTokensLease"]


def test_the_question_mark_shows_the_keys(chromium: Chromium, redis_url: str) -> None:
    async def helped(page: Any) -> tuple[bool, bool]:
        await page.goto(explored.base + "/map")
        await page.keyboard.press("?")
        shown = await page.is_visible("#help")
        await page.keyboard.press("Escape")
        return shown, await page.is_visible("#help")

    with exploring_sample(redis_url, "meetup") as explored:
        assert chromium.visit(helped) == (True, False)


@pytest.mark.parametrize("model", MODELS)
def test_every_page_is_also_json(redis_url: str, model: str) -> None:
    with exploring_sample(redis_url, model) as explored:
        for path in pages_of(explored, model).values():
            page = explored.get(path, Accept="application/json")
            assert page.headers["content-type"] == "application/json", path
            assert page.headers["vary"] == "Accept"
            assert isinstance(page.json(), dict)


def test_a_document_has_the_facts_of_its_page(redis_url: str) -> None:
    with exploring_sample(redis_url, "meetup") as explored:

        def document(path: str) -> Any:
            return explored.get(path, Accept="application/json, text/plain, */*").json()

        event = next(each for each in document("/map")["templates"] if each["name"] == "MeetupEvent")
        listed = document(event["url"])["listing"]["keys"]
        key = document(listed[0]["url"])
        missing = document("/nowhere")
    assert event["keys"] == len(listed) == 40
    assert (key["name"], key["type"], key["value"]["name"]) == ("meetup_event:e0", "hash", "name")
    assert missing == {
        "error": {"status": 404, "title": "Not found", "reason": "There is no such page."},
    }


def test_keys_are_listed_in_the_order_of_their_numbers(redis_url: str) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        page = explored.get(template_url("meetup", "UserTokens")).text
    users = re.findall(r'<a class="row id" href="/key\?name=meetup_user:(\d+):oauth2_tokens" title', page)
    assert users == [str(number) for number in range(1, 41)]


def test_raw_bytes_are_fetched_when_they_are_asked_for(chromium: Chromium, redis_url: str) -> None:
    async def unfold(page: Any) -> str:
        await page.goto(explored.base + key_path("shop:book:b_1:cover"))
        await page.click("details.raw summary")
        await page.wait_for_selector("pre.dump")
        return str(await page.inner_text("pre.dump"))

    with exploring_sample(redis_url, "bookshop") as explored:
        assert chromium.visit(unfold).split() == ["000000", "89", "50", "4e", "47", "·PNG"]


def test_json_unfolds(chromium: Chromium, redis_url: str) -> None:
    async def unfold(page: Any) -> list[str]:
        await page.goto(explored.base + key_path(name))
        hidden = await page.is_visible(".tree .tree .v >> nth=0")
        await page.click(".value summary >> nth=0")
        return [str(hidden), str(await page.is_visible(".tree .tree .v >> nth=0"))]

    with exploring_sample(redis_url, "drc") as explored:
        counted = explored.explorer.surveyor.latest.counted
        name = next(c.names[0] for kind, c in counted.items() if kind.__name__ == "Guild")
        assert chromium.visit(unfold) == ["False", "True"]


def test_a_list_is_walked_with_the_keyboard(chromium: Chromium, redis_url: str) -> None:
    async def press(page: Any) -> list[str]:
        await page.goto(explored.base + template_url("meetup", "MeetupEvent"))
        focused = "document.activeElement.innerText"
        steps = []
        for key in ("j", "ArrowDown", "k"):
            await page.keyboard.press(key)
            steps.append(await page.evaluate(focused))
        await page.keyboard.press("Enter")
        return [*steps, await page.inner_text("h1")]

    with exploring_sample(redis_url, "meetup") as explored:
        assert chromium.visit(press) == ["e0", "e1", "e0", "meetup_event:e0"]


def test_the_skip_link_comes_first_and_leads_to_the_content(chromium: Chromium, redis_url: str) -> None:
    async def press(page: Any) -> list[str]:
        await page.goto(explored.base + "/map")
        await page.keyboard.press("Tab")
        first = await page.evaluate("document.activeElement.innerText")
        await page.keyboard.press("Enter")
        return [first, await page.evaluate("document.activeElement.id")]

    with exploring_sample(redis_url, "meetup") as explored:
        assert chromium.visit(press) == ["Skip to content", "main"]


def test_an_id_that_is_part_of_a_longer_name_is_found_in_the_sample(redis_url: str) -> None:
    with exploring_sample(redis_url, "drc") as explored:
        counted = explored.explorer.surveyor.latest.counted
        presence = next(c for kind, c in counted.items() if kind.__name__ == "Presence")
        user = presence.names[0].rpartition(b":")[2].decode()
        page = explored.get(f"/search?q={user}").text
    assert f'href="{key_url(presence.names[0])}"' in page


def test_a_key_is_found_with_its_prefix_and_without(redis_url: str) -> None:
    with exploring_sample(redis_url, "bookshop") as explored:
        for asked in ("shop:book:b_1", "book:b_1"):
            found = explored.get(f"/search?q={asked}")
            assert (found.status_code, found.headers["location"]) == (303, "/key?name=shop:book:b_1")


def test_pages_work_without_javascript(chromium: Chromium, redis_url: str, raw: Raw, tmp_path: Path) -> None:
    """Tables, filters, backlinks, an audit, an edit and its undo are links and forms."""

    async def work(page: Any) -> list[str]:
        seen = []
        await page.goto(explored.base + template_url("meetup", "MeetupEvent") + "?col=link&op=filled")
        seen.append(str(await page.locator("table.rows tbody tr").count()))
        await page.click("table.rows a.row:text-is('e1')")
        await page.click("summary:has-text('Look in')")
        await page.click("#backlinks a:text-is('Show')")
        seen.append(await page.inner_text("h1"))
        await page.goto(explored.base + "/audit")
        await page.click("button:text-is('Start an audit')")
        await page.goto(explored.base + key_path("meetup_event:e1"))
        await page.click("a:text-is('Change members')")
        await page.fill("form.edit .field input >> nth=0", "another name")
        await page.click("button:text-is('Show the commands')")
        await page.click("button:text-is('Write')")
        seen.append(raw("HGET", "meetup_event:e1", "name"))
        await page.click("button:text-is('Undo')")
        seen.append(raw("HGET", "meetup_event:e1", "name"))
        return seen

    with exploring_sample(redis_url, "meetup", write=True, undo=tmp_path / "undo") as explored:
        found = chromium.visit(work, java_script_enabled=False)
    assert found == ["40", "Referred to by", b"another name", b"name"]


def test_raw_bytes_are_a_part_of_a_page_a_page_and_a_document(redis_url: str) -> None:
    address = "/key/raw?name=shop:book:b_1:cover"
    with exploring_sample(redis_url, "bookshop") as explored:
        part = explored.get(address, **{"HX-Request": "true"}).text
        page = explored.get(address).text
        document = explored.get(address, Accept="application/json").json()
        secret = explored.get("/key/raw?name=shop:session:815", Accept="application/json").json()
    assert "<h1" not in part
    assert "<h1>Raw bytes</h1>" in page
    assert "89 50 4e 47" in part
    assert "89 50 4e 47" in page
    assert document == {
        "name": "shop:book:b_1:cover",
        "entry": None,
        "withheld": None,
        "size": 4,
        "truncated": False,
        "entries": [{"entry": "", "size": 4, "bytes": {"base64": "iVBORw=="}}],
    }
    assert (secret["withheld"], secret["entries"]) == ("secret", [])

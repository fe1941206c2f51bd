"""Keys of a template and entries of a collection as tables: columns, filters, order, pages, exports."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

import msgspec
import pytest
import redis

from browsing import Chromium
from exploring import Explored, exploring, key_path, serious_findings, watched
from keywright import (
    FreeText,
    Id,
    Keyspace,
    List,
    Map,
    MessagePack,
    Record,
    RestOfName,
    Secret,
    Set,
    SortedSet,
    Stream,
    Value,
    index,
    refers,
)
from keywright.explorer.row_reader import A_VALUE
from keywright.testing.runs import Raw
from keywright.testing.servers import RedisServer

store = Keyspace("store", "Orders and customers.", prefix="store")
Status = Literal["new", "paid", "sent"]
SCRIPT = "<script>document.title='harmed'</script>"


class OrderDetails(msgspec.Struct, kw_only=True):
    customer: Id
    status: Status
    total: int
    placed: datetime
    remark: str | None = None


class Order(Record[OrderDetails], key="order:<order>", space=store):
    """An order."""

    order: Id


class Payment(msgspec.Struct):
    order: Id
    card: Secret[str]


class Paid(Record[Payment], key="paid:<paid>", space=store):
    """How an order was paid."""

    paid: Id


class Person(msgspec.Struct):
    name: str
    age: int


class Customer(Value[Annotated[Person, MessagePack]], key="customer:<customer>", space=store):
    """A customer."""

    customer: Id


class Event(Value[dict[str, Any]], key="event:<format>", space=store):
    """An object without a declared shape; its variable is named as a parameter of the page."""

    format: FreeText

    hides = ("token",)


class Orders(Set[Id], key="orders", space=store):
    """Every order."""


class Stock(Map[str, int], key="stock:<shelf>", space=store):
    """How many of each item."""

    shelf: Id


class Best(SortedSet[str, int], key="best:<year>", space=store):
    """Items by sales."""

    year: Id


class Queue(List[str], key="queue:<queue>", space=store):
    """Work to do."""

    queue: Id


class Tokens(Set[Secret[str]], key="tokens:<tokens>", space=store):
    """Secret members."""

    tokens: Id


class Codes(List[Secret[str]], key="codes:<codes>", space=store):
    """Secret items."""

    codes: Id


class Sale(msgspec.Struct):
    item: str
    data: str
    cents: int


class Sales(Stream[Sale], key="sales:<year>", space=store):
    """Sales as they happen."""

    year: Id


class Note(Value[str], key="note:<path>", space=store):
    """Any text under any name."""

    path: RestOfName


class Crowd(Set[str], key="crowd:<crowd>", space=store):
    """Many members."""

    crowd: Id


refers(Order, Customer, lambda _, order: [order.customer], name="customer")
index(Order, by=Orders)


def _order(raw: Raw, number: int, **members: Any) -> None:
    fields = {
        "customer": f"c{number % 3}",
        "status": ("new", "paid", "sent")[number % 3],
        "total": number * 10,
        "placed": f"2026-01-{number % 28 + 1:02}T12:00:00+00:00",
        **members,
    }
    raw("HSET", f"store:order:o{number}", *(part for pair in fields.items() for part in map(_stored, pair)))
    raw("SADD", "store:orders", f"o{number}")


def _stored(value: Any) -> Any:
    return value if isinstance(value, bytes) else str(value)


def _fill(raw: Raw) -> None:
    for number in range(60):
        _order(raw, number)
    raw("HSET", "store:paid:p1", "order", "o1", "card", "4111-secret")
    _order(raw, 4, remark="=HYPERLINK(1)")
    _order(raw, 5, total="not a number")
    _order(raw, 6, status="lost")
    _order(raw, 7, remark="x" * (A_VALUE + 1))
    raw("SADD", "store:order:wrong", "x")
    for number in range(3):
        raw("SET", f"store:customer:c{number}", msgspec.msgpack.encode(Person(f"Ada {number}", 30 + number)))
    events = {
        "a": {
            "kind": "click",
            "at": "2026-01-01T00:00:00Z",
            "size": 3,
            "token": "t0p-secret",
            SCRIPT: SCRIPT,
        },
        "b": {"kind": "view", "at": "2026-02-01T00:00:00Z", "size": 20, "nested": {"token": "t0p-secret"}},
        "c": {"kind": "view", "at": "2026-03-01T00:00:00Z", "size": 100, "link": "https://example.org/a"},
        "d": {"kind": "view", "\u202ebidi": "\u202e\x00", "format": "of the object"},
        "e": {"kind": "click"},
    }
    for name, event in events.items():
        raw("SET", f"store:event:{name}", msgspec.json.encode(event))
    raw("SET", "store:event:broken", "{")
    raw("SET", b"store:note:\xff\xfe<b>", b"n")
    raw("SET", "store:note:+1", "@formula")
    raw("HSET", "store:stock:s", *(part for n in range(250) for part in (f"item:{n}", str(n))))
    raw("HSET", "store:stock:s", "bad", "many")
    raw("ZADD", "store:best:y", *(part for n in range(250) for part in (str(n), f"item:{n}")))
    raw("RPUSH", "store:queue:q", *(f"job {n}" for n in range(250)))
    for number in range(150):
        payload = msgspec.json.encode({"n": number}).decode()
        raw(
            "XADD",
            "store:sales:y",
            f"{1_700_000_000_000 + number}-0",
            "item",
            f"i{number % 4}",
            "data",
            payload,
            "cents",
            str(number),
        )
    raw("XADD", "store:sales:y", "1700000000999-0", "item", "broken", "data", "{", "cents", "none")
    raw("SADD", "store:tokens:t", "t0p-secret")
    raw("RPUSH", "store:codes:c", "t0p-secret")
    raw("SADD", b"store:crowd:c", SCRIPT, b"\xff\xfe", "\u202ebidi")


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
def shop(server: RedisServer) -> Iterator[Explored]:
    """One filled and surveyed database for all tests here, which only read."""
    with redis.Redis.from_url(server.url) as client:
        _fill(Raw(client))
    with exploring(server.url, [store]) as explored:
        yield explored.surveyed()


def _listing(shop: Explored, name: str, query: str = "") -> dict[str, Any]:
    found = shop.get(f"/template/store/{name}?{query}", Accept="application/json")
    assert found.status_code == 200
    listing: dict[str, Any] = found.json()["listing"]
    return listing


def _filter(*tests: tuple[str, str, str]) -> str:
    return urlencode([pair for col, op, to in tests for pair in (("col", col), ("op", op), ("to", to))])


def _ids(listing: dict[str, Any], variable: str = "order") -> list[str]:
    return [each["variables"][variable] for each in listing["keys"]]


def _row(listing: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in listing["keys"] if each["name"] == name)


def test_members_of_a_record_are_typed_columns(shop: Explored) -> None:
    listing = _listing(shop, "Order")
    columns = {each["id"]: each for each in listing["columns"]}
    assert [(name, each["sort"]) for name, each in columns.items()] == [
        ("order", "text"),
        ("customer", "text"),
        ("status", "choice"),
        ("total", "number"),
        ("placed", "time"),
        ("remark", "text"),
        ("expires", "span"),
        ("memory", "size"),
    ]
    assert columns["status"]["choices"] == ["new", "paid", "sent"]
    values = _row(listing, "store:order:o1")["values"]
    assert {**values, "memory": 0} == {
        "order": "o1",
        "customer": "c1",
        "status": "paid",
        "total": 10,
        "placed": "2026-01-02T12:00:00+00:00",
        "remark": None,
        "expires": None,
        "memory": 0,
    }


def test_a_cell_that_does_not_decode_has_its_reason_and_the_rest_of_the_row_stays(shop: Explored) -> None:
    listing = _listing(shop, "Order")
    total, status, large = (_row(listing, f"store:order:o{number}") for number in (5, 6, 7))
    assert total["problems"].keys() == {"total"}
    assert "not a number" in total["problems"]["total"]
    assert total["values"]["customer"] == "c2"
    assert status["problems"].keys() == {"status"}
    assert status["values"]["total"] == 60
    assert large["note"].endswith("KiB, too large for a row")
    wrong = _row(_listing(shop, "Order", "from=50"), "store:order:wrong")
    assert wrong["note"] == "stored as a set, declared as a hash"
    page = shop.get("/template/store/Order").text
    assert page.count('<td data-label="total" class="bad">') == 1


def test_secrets_are_neither_shown_filtered_nor_sorted(shop: Explored) -> None:
    for query in ("", _filter(("card", "contains", "4111")), "sort=card", "format=csv", "format=json"):
        page = shop.get(f"/template/store/Paid?{query}")
        assert "4111" not in page.text.replace("value=&#34;4111", "").replace('value="4111"', "").replace(
            "to=4111", ""
        )
    refused = _listing(shop, "Paid", _filter(("card", "contains", "4111")))
    assert (refused["matching"], refused["problem"]) == (
        0,
        "'card' is secret, so it is neither filtered nor sorted.",
    )
    assert "is secret" in _listing(shop, "Paid", "sort=card")["problem"]
    for path in (
        "/template/store/Event",
        "/template/store/Event?_format=csv",
        "/template/store/Event?_format=json",
    ):
        assert "t0p-secret" not in shop.get(path).text
    for name in ("store:tokens:t", "store:codes:c"):
        for query in ("", "format=csv", "format=json", "sort=member", _filter(("member", "contains", "t0p"))):
            found = shop.get(f"{key_path(name)}&{query}")
            assert "t0p-secret" not in found.text
            assert "t0p-secret" not in shop.get(f"{key_path(name)}&{query}", Accept="application/json").text
    assert "not searched" in _entries(shop, "store:tokens:t", "match=t0p*")["problem"]
    assert _entries(shop, "store:tokens:t")["rows"][0]["name"] == "(secret)"
    for name in ("Tokens", "Codes"):
        assert "t0p-secret" not in shop.get(f"/template/store/{name}").text
    assert _listing(shop, "Event", _filter(("nested", "contains", "t0p")))["matching"] == 0


@pytest.mark.parametrize(
    ("tests", "found"),
    [
        ([("status", "eq", "paid"), ("total", "lt", "100")], {"o1", "o4"}),
        ([("total", "gt", "570")], {"o58", "o59"}),
        ([("total", "eq", "580.0")], {"o58"}),
        ([("placed", "gt", "2026-01-28T00:00")], {"o27", "o55"}),
        ([("remark", "filled", "")], {"o4"}),
        ([("remark", "contains", "hyperlink")], {"o4"}),
        ([("customer", "empty", ""), ("order", "ne", "wrong")], {"o7"}),
        ([("order", "eq", "o12")], {"o12"}),
        ([("memory", "gt", "60 KiB")], {"o7"}),
        ([("expires", "filled", "")], set()),
    ],
)
def test_rows_are_filtered_by_typed_tests(
    shop: Explored, tests: list[tuple[str, str, str]], found: set[str]
) -> None:
    assert set(_ids(_listing(shop, "Order", _filter(*tests)))) == found


def test_a_test_that_cannot_be_made_is_answered_with_the_remedy(shop: Explored) -> None:
    problems = {
        query: _listing(shop, "Order", query)["problem"]
        for query in (
            _filter(("total", "gt", "much")),
            _filter(("placed", "lt", "yesterday")),
            _filter(("expires", "lt", "soon")),
            _filter(("memory", "gt", "big")),
        )
    }
    assert list(problems.values()) == [
        "'total' is compared with a number, got 'much'.",
        "'placed' is compared with a time, as in 2026-01-31T12:00, got 'yesterday'.",
        "'Expires in' is compared with a duration, as in 30 min or 3600, got 'soon'.",
        "'Memory' is compared with a size, as in 4 KiB or 4096, got 'big'.",
    ]


def test_any_column_sorts_and_rows_without_a_value_come_last(shop: Explored) -> None:
    assert _ids(_listing(shop, "Order", "sort=total&desc=1"))[:3] == ["o59", "o58", "o57"]
    assert _ids(_listing(shop, "Order", "sort=total&from=50"))[-3:] == ["o5", "o7", "wrong"]
    assert _ids(_listing(shop, "Order"))[8:12] == ["o8", "o9", "o10", "o11"], "numbers in names count as such"
    sizes = _listing(shop, "Event", "sort=size")
    assert _ids(sizes, "format")[:3] == ["a", "b", "c"]


def test_frequent_values_are_counted_and_lead_to_their_rows(shop: Explored) -> None:
    facets = {each["column"]: each for each in _listing(shop, "Order")["facets"]}
    assert facets["status"]["values"] == [
        {"value": "sent", "count": 20},
        {"value": "new", "count": 19},
        {"value": "paid", "count": 19},
    ]
    page = shop.get("/template/store/Order").text
    url = re.search(r'<a href="([^"]*)">paid <span', page)
    assert url is not None
    narrowed = shop.get(url[1].replace("&amp;", "&"), Accept="application/json").json()["listing"]
    assert narrowed["matching"] == 19


def test_references_are_links_with_the_names_of_their_targets(shop: Explored) -> None:
    listing = _listing(shop, "Order", _filter(("order", "eq", "o1")))
    assert listing["keys"][0]["links"] == [
        {"column": "customer", "text": "c1", "url": "/key?name=store:customer:c1", "title": "Ada 1"}
    ]


def test_members_of_objects_without_a_shape_are_columns_too(shop: Explored) -> None:
    listing = _listing(shop, "Event")
    sorts = {each["id"]: each["sort"] for each in listing["columns"]}
    assert (sorts["kind"], sorts["at"], sorts["size"], sorts["nested"]) == ("text", "time", "number", "data")
    assert _row(listing, "store:event:d")["values"][".format"] == "of the object"
    assert "expected" in _row(listing, "store:event:broken")["note"]
    assert _ids(_listing(shop, "Event", _filter(("at", "gt", "2026-01-15T00:00"))), "format") == ["b", "c"]
    people = _listing(shop, "Customer")
    assert [each["id"] for each in people["columns"]][1:3] == ["name", "age"]


def test_the_chosen_columns_are_in_the_url(shop: Explored) -> None:
    page = shop.get("/template/store/Order?show=total&show=memory").text
    assert re.findall(
        r'<th scope="col"[^>]*>(?:<a [^>]*>)?([^<]*)',
        page.split('<table class="rows"')[1].split("</thead>")[0],
    ) == [
        "Key",
        "total",
        "Memory",
    ]
    assert 'href="/template/store/Order?sort=total&amp;show=total&amp;show=memory"' in page


def test_the_whole_template_is_walked_by_a_cursor_with_its_cost_stated(shop: Explored) -> None:
    found: list[str] = []
    path: str | None = "/template/store/Order?cursor=0-0"
    hows = []
    while path is not None:
        listing = shop.get(path, Accept="application/json").json()["listing"]
        found += _ids(listing)
        hows.append(listing["found"])
        path = listing["next"]
    assert sorted(found) == sorted({*(f"o{number}" for number in range(60)), "wrong"})
    assert hows[-1] == "Scanned all keys of this database, in the server's hash order"


def test_the_whole_template_is_walked_by_its_index(shop: Explored) -> None:
    found: list[str] = []
    path: str | None = "/template/store/Order?cursor=i-0-0"
    while path is not None:
        listing = shop.get(path, Accept="application/json").json()["listing"]
        found += _ids(listing)
        path = listing["next"]
    assert set(found) == {f"o{number}" for number in range(60)}
    assert listing["found"].startswith("Read 60 of 60 ids of the index Orders")


def test_keys_are_found_by_a_prefix_or_a_pattern_of_their_name(shop: Explored) -> None:
    prefix, pattern = _listing(shop, "Order", "match=order:o5"), _listing(shop, "Order", "match=*:o?")
    assert set(_ids(prefix)) == {"o5", *(f"o{number}" for number in range(50, 60))}
    assert set(_ids(pattern)) == {f"o{number}" for number in range(10)}


def _csv(shop: Explored, path: str) -> list[list[str]]:
    found = shop.get(path)
    assert found.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.reader(io.StringIO(found.text)))


def test_rows_are_exported_as_csv_that_no_spreadsheet_runs(shop: Explored) -> None:
    head, *rows = _csv(shop, "/template/store/Order?format=csv&" + _filter(("order", "eq", "o4")))
    assert dict(zip(head, rows[0], strict=True)) | {"bytes": ""} == {
        "key": "store:order:o4",
        "order": "o4",
        "customer": "c1",
        "status": "paid",
        "total": "40",
        "placed": "2026-01-05T12:00:00+00:00",
        "remark": "'=HYPERLINK(1)",
        "ttl_ms": "",
        "bytes": "",
        "note": "",
    }
    notes = {row[1]: row[2] for row in _csv(shop, "/template/store/Note?format=csv")[1:]}
    assert notes["'+1"] == "'@formula"
    every = _csv(shop, "/template/store/Order?cursor=0-0&format=csv")
    assert len({row[0] for row in every}) == 62
    assert "stored as a set, declared as a hash" in next(row for row in every if row[1] == "wrong")
    asked = shop.get("/template/store/Order", Accept="text/csv")
    assert asked.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="Order.csv"' in asked.headers["content-disposition"]


def test_an_export_that_reaches_its_limit_says_so(shop: Explored) -> None:
    rows = _csv(shop, "/template/store/Order?cursor=0-0&format=csv&limit=5")
    assert len(rows) == 7
    assert rows[-1][0].startswith("… incomplete: the limit of 5 rows")
    found = shop.get("/template/store/Order?format=json&limit=5").json()
    assert (len(found["rows"]), found["complete"], found["reason"]) == (5, False, "the limit of 5 rows")
    whole = shop.get("/template/store/Order?format=json").json()
    assert (len(whole["rows"]), whole["complete"], whole["next"]) == (61, True, None)
    assert whole["rows"][1]["values"]["total"] == 10


def test_a_variable_that_is_named_as_a_parameter_keeps_its_name(shop: Explored) -> None:
    found = shop.get("/template/store/Event?format=a")
    assert (found.status_code, found.headers["location"]) == (303, "/key?name=store:event:a")
    assert len(_csv(shop, "/template/store/Event?_format=csv")) == 7


def _entries(shop: Explored, name: str, query: str = "") -> dict[str, Any]:
    found = shop.get(f"{key_path(name)}&{query}", Accept="application/json").json()
    entries: dict[str, Any] = found["entries"]
    return entries


def _walked(shop: Explored, name: str, column: str, query: str = "") -> list[Any]:
    found: list[Any] = []
    path: str | None = f"{key_path(name)}&{query}"
    while path is not None:
        entries = shop.get(path, Accept="application/json").json()["entries"]
        found += [row["values"].get(column) for row in entries["rows"]]
        path = entries["next"]
    return found


def test_a_map_is_paged_and_found_by_pattern(shop: Explored) -> None:
    assert len(set(_walked(shop, "store:stock:s", "field"))) == 251
    assert set(_walked(shop, "store:stock:s", "field", "match=item:24")) == {
        "item:24",
        *(f"item:{n}" for n in range(240, 250)),
    }
    bad = _entries(shop, "store:stock:s", "match=bad")["rows"][0]
    assert bad["values"] == {"field": "bad"}
    assert "expected" in bad["note"]


def test_a_sorted_set_begins_at_the_top_and_is_read_by_score(shop: Explored) -> None:
    assert _walked(shop, "store:best:y", "score") == list(range(249, -1, -1))
    assert _walked(shop, "store:best:y", "score", "order=lowest") == list(range(250))
    assert _walked(shop, "store:best:y", "score", "min=10&max=12") == [12, 11, 10]
    assert _walked(shop, "store:best:y", "score", "min=10&max=12&order=lowest") == [10, 11, 12]
    assert _entries(shop, "store:best:y")["found"] == "1 to 100 of 250 members"
    assert set(_walked(shop, "store:best:y", "member", "match=*:9")) == {"item:9"}
    assert "must be a number" in _entries(shop, "store:best:y", "min=x")["problem"]


def test_a_list_is_read_from_both_ends(shop: Explored) -> None:
    assert _walked(shop, "store:queue:q", "value") == [f"job {n}" for n in range(250)]
    assert _walked(shop, "store:queue:q", "index", "order=last") == list(range(249, -1, -1))
    assert _entries(shop, "store:queue:q", "at=240")["rows"][0]["values"] == {
        "index": 240,
        "value": "job 240",
    }


def test_a_stream_is_newest_first_with_times_and_decoded_payloads(shop: Explored) -> None:
    entries = _entries(shop, "store:sales:y")
    first, second = entries["rows"][:2]
    assert (entries["order"], first["name"]) == ("newest first", "1700000000999-0")
    assert first["problems"].keys() == {"cents"}
    assert first["values"]["item"] == "broken"
    assert second["values"] == {
        "id": "1700000000149-0",
        "time": datetime(2023, 11, 14, 22, 13, 20, 149_000, UTC).isoformat(),
        "item": "i1",
        "data": {"n": 149},
        "cents": 149,
    }
    assert len(_walked(shop, "store:sales:y", "id")) == 151
    assert _walked(shop, "store:sales:y", "cents", "order=oldest&max=1700000000002") == [0, 1, 2]
    later = _walked(shop, "store:sales:y", "cents", "min=2023-11-14T22:13:20.148Z")
    assert later == [None, 149, 148]
    assert "its id or a time" in _entries(shop, "store:sales:y", "min=monday")["problem"]
    shown = shop.get(key_path("store:sales:y")).text
    assert ">2023-11-14 22:13:20</span>" in shown


def test_entries_are_filtered_sorted_and_exported(shop: Explored) -> None:
    found = _entries(
        shop, "store:sales:y", _filter(("item", "eq", "i2"), ("cents", "gt", "140")) + "&sort=cents"
    )
    assert [row["values"]["cents"] for row in found["rows"]] == [142, 146]
    rows = _csv(shop, f"{key_path('store:sales:y')}&format=csv&show=item&show=cents")
    assert (rows[0], len(rows)) == (["item", "cents", "note"], 152)
    document = shop.get(f"{key_path('store:best:y')}&format=json").json()
    assert (len(document["rows"]), document["complete"]) == (250, True)


def test_names_are_searched_by_pattern_with_a_cursor(shop: Explored) -> None:
    found: list[str] = []
    path: str | None = "/search?q=order:o1*"
    while path is not None:
        document = shop.get(path, Accept="application/json").json()
        found += [each["name"] for each in document["found"]]
        path = document["next"]
    assert sorted(found) == sorted(["store:order:o1", *(f"store:order:o1{n}" for n in range(10))])
    nothing = shop.get("/search?q=o1x").text
    assert 'href="/search?q=o1x%2A"' in nothing


def test_a_missing_key_has_similar_names(shop: Explored) -> None:
    document = shop.get(key_path("store:order:o33x"), Accept="application/json")
    assert document.status_code == 404
    assert document.json()["near"][0] == "/key?name=store:order:o33"
    stranger = shop.get(key_path("store:ordr:o33"))
    assert "The closest template is" in stranger.text
    assert 'href="/key?name=store:order:o33"' in stranger.text


def test_a_pattern_that_would_make_the_server_work_for_long_is_refused(shop: Explored) -> None:
    stars = "*a" * 20
    assert "Use a shorter one." in _listing(shop, "Order", f"match={stars}")["problem"]
    assert "Use a shorter one." in _entries(shop, "store:stock:s", f"match={stars}")["problem"]
    assert shop.get(f"/search?q={stars}").status_code == 400


def test_names_that_are_not_utf8_are_found_and_have_forms(shop: Explored) -> None:
    found = shop.get("/search?q=note:*", Accept="application/json").json()["found"]
    assert "/key?name=store:note:%FF%FE%3Cb%3E" in [each["url"] for each in found]
    assert shop.get("/key?name=store:note:%FF%FE%3Cb%3E&sort=x&format=csv").status_code == 200
    crowd = shop.get(f"/key?name.hex={b'store:crowd:c'.hex()}").text
    assert crowd.count("<tr") == 4
    assert "\\xff\\xfe" in crowd
    assert "\\u202ebidi" in crowd


def test_tables_work_in_a_browser_and_hostile_data_is_only_text(chromium: Chromium, shop: Explored) -> None:
    paths = [
        "/template/store/Order?" + _filter(("status", "eq", "paid"), ("placed", "gt", "2026-01-02T00:00")),
        "/template/store/Event",
        "/template/store/Note",
        key_path("store:crowd:c"),
        key_path("store:sales:y"),
        "/search?q=" + quote("*<*"),
        key_path("store:order:o33x"),
    ]

    async def look(page: Any, paths: list[str] = paths) -> None:
        for path in paths:
            await page.goto(shop.base + path)
            assert await page.title() != "harmed"
            assert await page.locator("main script, main img").count() == 0
            assert await serious_findings(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0

    async def narrow(page: Any) -> list[str]:
        await page.goto(f"{shop.base}/template/store/Order")
        await page.click("summary:has-text('Filter')")
        await page.select_option("select[name=col]", "status")
        await page.fill("input[name=to]", "sent")
        await page.click("button:text-is('Apply')")
        await page.click("th a:text-is('total')")
        await page.click("th a:has-text('total')")
        first = await page.inner_text("table.rows tbody a.row >> nth=0")
        await page.click("summary:has-text('Columns')")
        await page.uncheck("input[name=show][value=placed]")
        await page.click("button:text-is('Show these')")
        heads = await page.locator("table.rows th").all_inner_texts()
        await page.click("table.rows td a:has-text('c2') >> nth=0")
        return [first, " ".join(heads), await page.inner_text("h1")]

    async def visit(page: Any) -> list[str]:
        troubles = await watched(page, look)
        assert troubles == []
        return await narrow(page)

    first, heads, target = chromium.visit(visit, width=1280)
    assert (first, target) == ("o59", "store:customer:c2")
    assert "placed" not in heads
    assert "total" in heads
    assert (
        chromium.visit(lambda page: watched(page, lambda page: look(page, paths[:2])), width=390, dark=True)
        == []
    )

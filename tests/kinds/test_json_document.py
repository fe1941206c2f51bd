"""JSON documents without a server that has JSON: what is declared, sent and refused."""

from __future__ import annotations

import pytest

from audited import audited
from json_pages import CMS, Draft, Page, PageOf, cms
from keywright import check, connect, preview
from keywright.errors import CapabilityError, UsageError, ValueRefusedError
from keywright.testing import RedisServer
from keywright.tools.docs.formats import Format, written


def test_a_server_without_json_refuses_before_anything_is_written(
    redis_url: str, keywright_server: RedisServer
) -> None:
    calls = (PageOf("a").get(), PageOf("a").set(Page("x")), Draft("a").set(Page("x")), PageOf("a").add("$.n"))
    with connect(redis_url) as db:
        for call in calls:
            with pytest.raises(CapabilityError, match="RedisJSON"):
                db.run(call)
        assert not db.run(Draft("a").exists())
    keywright_server.call("SET", "c:page:a", "{}")
    assert [each.code for each in audited(redis_url, CMS)[1]] == ["KW201"]


def test_declarations_and_arguments_are_checked_without_a_server() -> None:
    assert [finding for finding in check(cms) if finding.severity == "error"] == []
    (wire,) = preview(PageOf("a").set(Page("x")))
    assert wire.arguments == (b"JSON.SET", b"c:page:a", b"$", b'{"title":"x","views":0,"tags":[]}')
    with pytest.raises(UsageError, match=r"begins with \$"):
        PageOf("a").get_path("title")
    with pytest.raises(UsageError, match="must be JSON"):
        PageOf("a").set_path("$.x", object())
    with pytest.raises(ValueRefusedError):
        PageOf("a").set("text")  # type: ignore[arg-type]  # not a page
    assert "ReJSON-RL (json)" in written(CMS.model.described(), Format.MARKDOWN)

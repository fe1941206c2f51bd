"""JSON documents on a server that has JSON; collected where KEYWRIGHT_JSON_MODULE names the module."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from audited import audited, repaired
from exploring import exploring, key_path
from json_pages import CMS, Draft, Page, PageOf, cms, fill
from keywright import Database, Id, Keyspace, Opaque, aconnect, connect
from keywright.errors import CapabilityError, StoredDataError
from keywright.testing import RedisServer, as_user
from keywright.testing.damage import plant
from keywright.tools.acl import AclRole, acl
from keywright.tools.transfer import Imported, export_keys, import_keys, plan_import
from new_valkey import new_binary


@pytest.fixture(scope="module")
def json_server() -> Iterator[RedisServer]:
    options = {"loadmodule": os.environ["KEYWRIGHT_JSON_MODULE"]}
    with RedisServer(binary=new_binary(), options=options) as server:
        yield server


@pytest.fixture
def db(json_server: RedisServer) -> Iterator[Database]:
    json_server.call("FLUSHALL")
    with connect(json_server.url) as db:
        yield db


def test_a_document_is_written_and_read_whole(db: Database) -> None:
    assert db.run(PageOf("a").get()) is None
    db.run(PageOf("a").set(Page("Home", 3, ["x"])))
    assert db.run(PageOf("a").get()) == Page("Home", 3, ["x"])
    assert db.run(PageOf("a").stored_type()) == "ReJSON-RL"
    assert not db.run(PageOf("a").create(Page("Other")))
    assert db.run(PageOf("b").create(Page("Other")))
    db.run(Draft("a").set(Page("Home")))
    left = db.run(Draft("a").ttl())
    assert left is not None


def test_parts_are_read_and_changed_by_path(db: Database) -> None:
    page = PageOf("a")
    assert db.run(page.get_path("$.title")) == []
    db.run(page.set(Page("Home", 3, ["x"])))
    assert db.run(page.get_path("$.title")) == ["Home"]
    assert db.run(page.set_path("$.title", "House"))
    assert not db.run(page.set_path("$.nothing.deeper", 1))
    assert not db.run(PageOf("b").set_path("$.title", "x"))
    assert not db.run(Draft("b").set_path("$.title", "x"))
    assert db.run(page.add("$.views", 2)) == [5]
    assert db.run(page.add("$.title")) == [None]
    assert db.run(page.append("$.tags", "y", "z")) == [3]
    assert db.run(page.append("$.tags")) == []
    assert db.run(page.remove("$.tags[0]")) == 1
    assert db.run(page.get()) == Page("House", 5, ["y", "z"])
    db.run(page.set_path("$.views", "many"))
    with pytest.raises(StoredDataError):
        db.run(page.get())


def test_members_are_merged_where_the_server_can(db: Database) -> None:
    db.run(PageOf("a").set(Page("Home", 3)))
    merged = db.run(PageOf("a").merge({"views": 4, "tags": None}).attempt())
    if isinstance(merged, CapabilityError):
        assert "without JSON.MERGE, valkey-json" in str(merged)
        assert db.run(PageOf("a").get()) == Page("Home", 3)
    else:
        assert db.run(PageOf("a").get()) == Page("Home", 4)


def test_documents_are_audited_repaired_and_shown(
    db: Database, json_server: RedisServer, tmp_path: Path
) -> None:
    fill(db)
    assert audited(json_server.url, CMS)[1] == []
    with exploring(json_server.url, [cms]) as explored:
        page = explored.get(key_path("c:page:a"))
        assert page.status_code == 200
        assert "title" in page.text
    planted = plant(db, [cms], each=1)
    assert {"KW202", "KW201", "KW301"} <= {fault.code for fault in planted}
    found = {(each.code, each.name) for each in audited(json_server.url, CMS)[1]}
    assert {(fault.code, fault.name) for fault in planted} <= found
    repaired(json_server.url, CMS, tmp_path / "undo")
    assert audited(json_server.url, CMS)[1] == []


def test_a_writer_with_the_rules_of_the_model_writes_documents(
    db: Database, json_server: RedisServer
) -> None:
    for role in (AclRole.WRITER, AclRole.READER):
        rules = [rule.replace(" +json.merge", "") for rule in acl(CMS.model.described(), role).rules()]
        json_server.call("ACL", "SETUSER", role.value, "reset", "on", ">pw", *rules)
    with connect(as_user(json_server.url, "writer", "pw")) as writer:
        writer.run(Draft("a").set(Page("Home")))
    with connect(as_user(json_server.url, "reader", "pw")) as reader:
        assert reader.run(Draft("a").get()) == Page("Home")


archive = Keyspace("archive", "Documents whose content no tool reads.")


class Archived(Opaque, key="archived:<page>", space=archive, redis_type="ReJSON-RL"):
    """A document that is kept as it is."""

    page: Id


def test_documents_and_dumps_of_modules_are_exported_and_imported(
    json_server: RedisServer, db: Database
) -> None:
    db.run(PageOf("a").set(Page("Home", 3, ["x"])))
    json_server.call("JSON.SET", "archived:a", "$", '{"a": 1}')

    async def round_trip() -> Imported:
        async with aconnect(json_server.url) as adb:
            file = io.BytesIO()
            spaces = [cms, archive]
            await export_keys(adb, "cms", spaces, file.write)
            json_server.call("FLUSHALL")
            assert (await plan_import(adb, spaces, file)).invalid == 1  # the dump
            plan = await plan_import(adb, spaces, file, with_dumps=True)
            done = await import_keys(adb, spaces, file, plan, with_dumps=True)
            again = await plan_import(adb, spaces, file, with_dumps=True)
            assert sum(again.same.values()) == 2
            json_server.call("SET", "text", "no document")
            dump = json_server.call("DUMP", "text")
            hostile = [json.loads(line) for line in file.getvalue().splitlines()]
            for line in hostile:
                if "dump" in line:
                    line["dump"] = base64.b64encode(cast(bytes, dump)).decode()
            changed = io.BytesIO(
                "\n".join(map(json.dumps, hostile)).replace('{"keys": ', '{"keys":').encode()
            )
            json_server.call("FLUSHALL")
            plan = await plan_import(adb, spaces, changed, with_dumps=True)
            refused = await import_keys(adb, spaces, changed, plan, with_dumps=True)
            assert [reason for _, reason in refused.failed] == ["its dump has another type"]
            assert json_server.call("EXISTS", "archived:a") == 0
            return done

    assert asyncio.run(round_trip()).written == 2

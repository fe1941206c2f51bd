"""Recognition of programs: each by names that only it has, of the declared type, and nothing else."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Mapping
from typing import Annotated

import pytest

from inferred_modules import refuse_code
from keywright import Id, Keyspace, Segment, Set, Value, check
from keywright.errors import UsageError
from keywright.tools import Program
from keywright.tools.infer import Inference, NameSample, infer, inferred_model
from keywright.tools.infer.facts import Facts
from keywright.tools.plugins import load_catalogue

UUID = "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"
MD5 = "d41d8cd98f00b204e9800998ecf8427e"
SESSION = "django.contrib.sessions.cache" + "q" * 32
MESSAGE = json.dumps(
    {"body": "", "content-encoding": "utf-8", "content-type": "", "headers": {}, "properties": {}}
).encode()
CALL = json.dumps(
    {
        "queue_name": "default",
        "actor_name": "add",
        "args": [],
        "kwargs": {},
        "options": {},
        "message_id": UUID,
        "message_timestamp": 1,
    }
)
RESULT = json.dumps(
    {
        "status": "SUCCESS",
        "result": 3,
        "traceback": None,
        "children": [],
        "date_done": None,
        "task_id": UUID,
    }
).encode()
PICKLE = pickle.dumps({"name": "Ann"})


def string(value: bytes = b"x") -> Facts:
    return Facts("string", None, (value,))


def listed(*values: bytes) -> Facts:
    return Facts("list", None, values)


def hashed(**fields: str) -> Facts:
    found = {name.encode(): value.encode() for name, value in fields.items()}
    return Facts("hash", None, fields=(found,), size=len(found))


SET, ZSET, STREAM = Facts("set", None, (b"x",)), Facts("zset", None, (b"x",), (b"1",)), Facts("stream", None)

CELERY: Mapping[str, Facts] = {
    "_kombu.binding.celery": SET,
    f"celery-task-meta-{UUID}": string(RESULT),
    "celery": listed(MESSAGE),
    "unacked": hashed(a="1"),
}
RQ: Mapping[str, Facts] = {
    "rq:queue:default": listed(b"j1"),
    "rq:job:j1": hashed(status="queued"),
    "rq:worker:a": hashed(version="2.12.0"),
    "rq:worker:b": hashed(version="2.9.1"),
    "rq:suspended": string(),
}
BULLMQ: Mapping[str, Facts] = {
    "bull:mail:meta": hashed(version="bullmq:7.1.2"),
    "bull:mail:wait": listed(b"1"),
    "bull:mail:1": hashed(name="a"),
}
DRAMATIQ: Mapping[str, Facts] = {
    "dramatiq:default.msgs": hashed(**{UUID: CALL}),
    "dramatiq:default": listed(UUID.encode()),
    MD5: listed(b'{"result": 1}'),
    "imports": string(b"3"),
}
DJANGO: Mapping[str, Facts] = {
    f":1:{SESSION}": string(PICKLE),
    ":1:user:17": string(PICKLE),
}
SHOP: Mapping[str, Facts] = {
    **{f"user:{n}:visits": string(b"3") for n in range(20)},
    "config": hashed(theme="dark"),
    "0cc175b9c0f1b6a831c399e269772661": listed(b"plain text"),
}


def inferred(*databases: Mapping[str, Facts | None], space: str = "inferred") -> Inference:
    sample, facts = NameSample(), {}
    for database in databases:
        for name, found in database.items():
            sample.add(name.encode())
            if found is not None:
                facts[name.encode()] = found
    return infer(sample, facts, programs=load_catalogue(), space=space)


def claimed(found: Inference) -> dict[str, set[str]]:
    return {each.program.name: {name.decode() for name in each.names} for each in found.programs}


@pytest.mark.parametrize(
    ("name", "database"),
    [("bullmq", BULLMQ), ("celery", CELERY), ("django", DJANGO), ("dramatiq", DRAMATIQ), ("rq", RQ)],
)
def test_a_program_is_recognised_beside_other_keys(name: str, database: Mapping[str, Facts]) -> None:
    found = inferred(database, SHOP)
    assert claimed(found) == {name: set(database)}
    refuse_code(found.text)
    assert f"from keywright_catalogue.{name} import program as {name}_program" in found.text
    assert "user:<user>:visits" in found.text
    spaces = inferred_model(found).spaces
    assert len(spaces) == 1 + len(found.programs[0].program.spaces)
    assert [str(each) for each in check(*spaces) if each.severity == "error"] == []


def test_several_programs_share_a_database() -> None:
    found = inferred(CELERY, RQ, DJANGO, SHOP)
    databases = {"celery": CELERY, "django": DJANGO, "rq": RQ}
    assert claimed(found) == {name: set(keys) for name, keys in databases.items()}
    assert found.matched == found.names
    assert not any("can make the same names" in line for line in found.coverage)
    spaces = inferred_model(found).spaces
    assert [str(each) for each in check(*spaces) if each.severity == "error"] == []
    refuse_code(found.text)


def test_programs_that_overlap_are_named() -> None:
    found = inferred(CELERY, DRAMATIQ)
    assert "celery and dramatiq can make the same names: audit one of them at a time" in found.coverage


def test_names_alone_are_recognised_and_wide_templates_claim_none_of_them() -> None:
    names = {name: None for database in (CELERY, DRAMATIQ, SHOP) for name in database}
    assert claimed(inferred(names)) == {
        "celery": {"_kombu.binding.celery", f"celery-task-meta-{UUID}", "unacked"},
        "dramatiq": {"dramatiq:default.msgs", "dramatiq:default"},
    }


@pytest.mark.parametrize(
    "database",
    [
        pytest.param({"celery": listed(MESSAGE), "unacked": hashed(a="1")}, id="a queue without bindings"),
        pytest.param({"rq:job:1": string(), "rq:queue:a": string()}, id="names with keys of another type"),
        pytest.param({"rq:jobs": SET, "rq:x": string()}, id="a prefix that others use too"),
        pytest.param(
            {"bull:mail:id": string(b"1"), "bull:mail:wait": listed(b"1"), "bull:mail:completed": ZSET},
            id="Bull, the predecessor of BullMQ",
        ),
        pytest.param({"user:1:name": string(PICKLE), ":1:x": string(PICKLE)}, id="pickles"),
        pytest.param({MD5: listed(b"1"), UUID: string(b"1")}, id="digests and UUIDs"),
        pytest.param({f"celery-task-meta-{UUID}": string(b"mine")}, id="values that do not decode"),
        pytest.param({"user:www.example.org:17": hashed(a="1")}, id="a hash with dots in its name"),
        pytest.param({f"session:{'s' * 43}": string(b'{"user": 17}')}, id="sessions in JSON"),
        pytest.param({f"session:{'s' * 43}": None}, id="sessions without a value"),
        pytest.param({"schedule:cron": listed(b"1"), "schedule:interval": None}, id="schedules"),
        pytest.param({"a:dramatiq:b.msgs": hashed(a="1"), "xrq:workers": SET}, id="marks in the middle"),
    ],
)
def test_other_keys_are_not_recognised(database: Mapping[str, Facts | None]) -> None:
    found = inferred(database)
    assert found.programs == ()
    assert "programs" not in found.text


def test_a_wide_template_claims_only_values_that_it_decodes() -> None:
    others: Mapping[str, Facts] = {"jobs": listed(b"not a message"), "names": string(), "empty": listed()}
    assert claimed(inferred(CELERY, others))["celery"] == set(CELERY)


def test_an_entry_of_djangos_cache_is_of_a_site_that_has_sessions() -> None:
    others: Mapping[str, Facts] = {":2:user:17": string(PICKLE), "shop:1:user:17": string(PICKLE)}
    assert claimed(inferred(DJANGO, others))["django"] == set(DJANGO)


def test_a_session_of_flask_is_known_by_its_value() -> None:
    sessions = {f"session:{'s' * 43}": string(b'{"_permanent": true, "user": 17}')}
    assert claimed(inferred(sessions)) == {"flask-session": set(sessions)}


def test_a_model_of_redis_om_is_of_an_application_that_has_ulids() -> None:
    om = {":shop.models.Customer:01ARZ3NDEKTSV4RRFFQ69G5FAV": hashed(pk="1"), ":visit:7": hashed(pk="7")}
    assert claimed(inferred(om, {"shop:visit:7": hashed(pk="7")})) == {"redis-om": set(om)}


def test_keys_of_another_type_are_left_out_and_counted() -> None:
    jobs = {f"rq:job:{n}": hashed(status="queued") for n in range(20)}
    found = inferred(jobs, {"rq:job:odd": string()})
    assert claimed(found) == {"rq": set(jobs)}
    (rq,) = found.programs
    assert (rq.distinctive, rq.classes, rq.mistyped) == (20, 1, 1)
    assert "left out: 1 of these names, whose keys have another type" in rq.evidence


def test_the_version_is_the_newest_that_the_data_shows() -> None:
    (rq,) = inferred(RQ).programs
    assert rq.title == "RQ 2.12.0"
    assert rq.evidence == [
        "4 names match 3 of the 8 templates that only RQ has, and 4 of the keys have the declared type"
    ]


def test_a_version_that_was_not_tested_is_noted() -> None:
    (found,) = inferred(BULLMQ).programs
    assert found.title == "BullMQ 7.1.2"
    assert found.evidence[-1] == "declared and tested for 6.7"


def test_a_version_that_the_data_does_not_show_is_the_tested_one() -> None:
    found = inferred(CELERY)
    assert found.coverage[:2] == [
        "4 of 4 keys, 100.00%, match 0 templates and 1 program",
        "4 keys are Celery, in the catalogue as celery:",
    ]
    assert "  the data does not show the version; declared and tested for 5.7" in found.coverage
    assert inferred_model(found).spaces[0].keys == []


def test_hostile_versions_never_reach_the_module() -> None:
    found = inferred({"rq:worker:a": hashed(version='9"\nimport os #' + "9" * 5000), "rq:queues": SET})
    refuse_code(found.text)
    assert "import os" not in found.text


HOSTILE = (
    b"",
    b"x",
    b"\xff" * 9,
    b"[" * 100_000,
    b'{"a":' * 5000,
    b"\x80\x04" + b"(" * 999 + b".",
    b"9" * 9999,
)


def test_hostile_values_under_names_of_every_program_are_survived() -> None:
    types = ("string", "list", "set", "zset", "hash", "stream", "ReJSON-RL")
    database: dict[str, Facts | None] = {}
    noise = random.Random(18)
    for program in load_catalogue().values():
        for space in program.spaces:
            for kind in space:
                alphabets = kind.declaration.template.alphabets
                key = kind(**{name: alphabet.samples[-1] for name, alphabet in alphabets.items()})
                name = (space.bind().lead + bytes(key)).decode()
                redis_type = kind.redis_type if noise.random() < 0.8 else noise.choice(types)
                value = noise.choice(HOSTILE)
                database[name] = Facts(
                    redis_type, None, (value,), (b"inf",), ({value: value, b"version": value},)
                )
    found = inferred(database)
    refuse_code(found.text)
    assert len(database) > 100
    assert found.names == len(database)


def test_without_a_catalogue_nothing_is_recognised() -> None:
    sample = NameSample()
    sample.add(b"rq:queues")
    assert infer(sample).programs == ()


def test_templates_that_overlap_with_a_program_are_not_declared() -> None:
    others = {f"dramatiq:{n}-{'x' * n}": string() for n in range(40)}
    found = inferred(
        DRAMATIQ, {f"{letter}ramatiq:{n}": string() for n in range(9) for letter in "abc"}, others
    )
    spaces = inferred_model(found).spaces
    assert [str(each) for each in check(*spaces) if each.severity == "error"] == []


def _keyspace() -> tuple[Keyspace, type[Value[str]], type[Set[str]]]:
    pots = Keyspace("pots", "Plants in pots.")

    class Pot(Value[str], key="pot:<pot>", space=pots):
        """The plant in a pot."""

        pot: Id

    class Anything(Set[str], key="<name>", space=pots, fallback=True):
        """Any other."""

        name: Annotated[str, Segment("")]

    return pots, Pot, Anything


def test_a_program_needs_classes_that_only_it_has() -> None:
    pots, pot, anything = _keyspace()
    assert Program("pots", "Pots", "1", (pots,), distinctive=(pot,)).marks == (b"pot:",)
    for distinctive, why in (((), "no class is distinctive"), ((anything,), "Anything has any name")):
        with pytest.raises(UsageError, match=why):
            Program("pots", "Pots", "1", (pots,), distinctive=distinctive)
    with pytest.raises(UsageError, match="Pot is not a key of other"):
        Program("other", "Other", "1", (Keyspace("other", "d"),), distinctive=(pot,))
    with pytest.raises(UsageError, match="Anything has no <pot>"):
        Program("pots", "Pots", "1", (pots,), distinctive=(pot,), shared=("pot",))

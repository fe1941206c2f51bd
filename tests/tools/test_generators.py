"""Generators: every one of them for every model, judged by what reads such files."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
import redis
import yaml

import every_kind
from keywright import Counter, Id, Keyspace, Value, expires_in
from keywright.errors import UsageError
from keywright.tools import Model, load_model
from keywright.tools.audit.budgets import parse_budget
from keywright.tools.generators import Generation, Generator, generator_summaries, load_generator
from keywright.tools.generators.key_groups import key_groups
from keywright.tools.plugins import model_names, program_names

INVENTED = Model("shop", (every_kind.shop, every_kind.archive))
MODELS = [*model_names(), *program_names()]
EXPORTED = frozenset(
    (
        "redis_db_keys",
        "redis_db_keys_expiring",
        "redis_key_group_count",
        "redis_key_group_memory_usage_bytes",
        "redis_stream_group_messages_pending",
    )
)
"""Metrics of redis_exporter."""

# As redis_exporter classifies a key: the captures of the first pattern that finds something.
CLASSIFY = """
for i = 2, #ARGV do
  local found = {string.find(ARGV[1], ARGV[i])}
  if found[1] ~= nil then
    return {i - 1, table.concat({unpack(found, 3, #found)}, "")}
  end
end
return {0, "unclassified"}
"""


def generated(name: str, model: Model = INVENTED, **more: Any) -> str:
    return load_generator(name).run(Generation(model, **more))


def all_models() -> list[Model]:
    return [INVENTED, *map(load_model, MODELS)]


@pytest.mark.parametrize("name", list(generator_summaries()))
def test_a_generator_writes_the_same_file_for_the_same_model(name: str) -> None:
    text = generated(name)
    assert text == generated(name)
    assert text.endswith("\n")


def test_values_are_valid_by_the_json_schema_of_all_values() -> None:
    for model in all_models():
        document = json.loads(generated("json-schema", model))
        jsonschema.Draft202012Validator.check_schema(document)
        properties = document["properties"]
        assert len(properties) == sum(len(space.keys) + len(space.channels) for space in model.spaces)
    validator = jsonschema.Draft202012Validator(json.loads(generated("json-schema")))
    fine = {"Sales": 7, "Stock": {"a.1": 3}, "Baskets": ["a"], "Tiered": "AA==", "Jobs": "done"}
    validator.validate(fine)
    event = {"type": "paid", "amount": "1.50"}
    validator.validate({"Events": [event]})
    for wrong in (
        {"Sales": "7"},
        {"Sales": 2**63},
        {"Stock": {"two words": 3}},
        {"Baskets": ["a", "a"]},
        {"Events": [{"type": "lost"}]},
        {"Ranks": [{"member": "a"}]},
    ):
        assert not validator.is_valid(wrong), wrong


def test_redis_exporter_puts_every_key_into_the_group_of_its_template(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as server:
        for model in all_models():
            (patterns,) = csv.reader(io.StringIO(generated("redis-exporter", model).partition("=")[2]))
            groups = key_groups(model)
            assert patterns == list(dict.fromkeys(group.pattern for group in groups))
            names = {group.key: {each.name for each in groups if each.key is group.key} for group in groups}
            for space, described in zip(model.spaces, model.described().spaces, strict=True):
                for kind in space:
                    template = kind.declaration.template
                    samples = [template.alphabets[name].samples[0] for name in template.variables]
                    key = kind.parse(template.render(samples))
                    if key is None:
                        continue  # a name that belongs to another class
                    full = described.lead.encode() + bytes(key)
                    place, found = server.eval(CLASSIFY, 0, full, *patterns)
                    assert place, full
                    assert found.decode() in names[kind], (full, found, names[kind])


def test_keys_that_no_template_declares_are_in_no_group(redis_url: str) -> None:
    (patterns,) = csv.reader(io.StringIO(generated("redis-exporter").partition("=")[2]))
    with redis.Redis.from_url(redis_url) as server:
        for name in (b"shop:v2:sales:two words", b"shop:v2:salesman:a", b"sales:a", b"shop:v2:sales:a:b"):
            assert server.eval(CLASSIFY, 0, name, *patterns) == [0, b"unclassified"], name


def test_dashboards_and_alerts_ask_for_metrics_that_the_exporter_has() -> None:
    for model in all_models():
        dashboard = json.loads(generated("grafana", model))
        panels = dashboard["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        assert len(panels) >= 3 + sum(len(space.keys) for space in model.spaces)
        places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
        assert len(places) == len(panels)
        variables = {each["name"] for each in dashboard["templating"]["list"]}
        asked = [target["expr"] for panel in panels for target in panel["targets"]]
        assert {name for query in asked for name in re.findall(r"\$(\w+)", query)} <= variables
        rules = yaml.safe_load(generated("prometheus", model))["groups"][0]["rules"]
        for query in (*asked, *(rule["expr"] for rule in rules)):
            assert set(re.findall(r"redis_\w+", re.sub(r'"[^"]*"', "", query))) <= EXPORTED
            assert query.count("(") - query.count("\\(") == query.count(")") - query.count("\\)")


def test_alert_rules_come_from_expiries_and_budgets() -> None:
    space = Keyspace("visits", "Who came.", prefix="v")

    class Visits(Counter, key="visits:<day>", space=space, expiry=expires_in(timedelta(days=7))):
        day: Id

    class Names(Value[str], key="name:<who>", space=space):
        who: Id

    model = Model("visits", (space,))
    budgets = (parse_budget("v:visits:<day>=2MB"), parse_budget("*=1G"))
    (group,) = yaml.safe_load(generated("prometheus", model, budgets=budgets))["groups"]
    rules = {(rule["alert"], rule["labels"].get("template")): rule for rule in group["rules"]}
    assert set(rules) == {
        ("UndeclaredKeys", None),
        ("KeysWithoutExpiry", None),
        ("OverBudget", "v:visits:<day>"),
        ("OverBudget", "*"),
    }
    assert 'key_group!~"v:visits:"' in rules["KeysWithoutExpiry", None]["expr"]
    assert "7 days" in rules["KeysWithoutExpiry", None]["annotations"]["description"]
    assert rules["OverBudget", "v:visits:<day>"]["expr"].endswith('{key_group=~"v:visits:"}) > 2097152')
    with pytest.raises(UsageError, match="does not name a template"):
        generated("prometheus", model, budgets=(parse_budget("visits=1"),))
    with pytest.raises(UsageError, match="takes no budgets"):
        generated("dbml", model, budgets=budgets)


def test_streams_and_channels_are_asyncapi() -> None:
    document = json.loads(generated("asyncapi"))
    assert document["asyncapi"] == "3.0.0"
    addresses = {name: each["address"] for name, each in document["channels"].items()}
    assert addresses == {
        "Events": "shop:v2:events:{hash}",
        "News": "shop:v2:news:{lang}",
        "Shard": "shop:v2:shard:%7B{number}%7D",
    }
    assert {each["action"] for each in document["operations"].values()} == {"send", "receive"}
    payload = document["components"]["messages"]["News"]["payload"]
    assert payload == {"$ref": "#/components/schemas/Article"}
    assert "Article" in document["components"]["schemas"]
    assert document["components"]["messages"]["News"]["contentType"] == "application/json"
    described = json.loads(generated("asyncapi", load_model("spectacles")))
    assert "amqp" in described["channels"]["events"]["bindings"]


def test_dbml_has_a_table_for_each_key_and_one_reference_for_each_pair() -> None:
    for model in all_models():
        text = generated("dbml", model)
        tables = re.findall(r'^Table "[^"]+"\."([^"]+)" \{$', text, re.MULTILINE)
        assert sorted(tables) == sorted(key.__name__ for space in model.spaces for key in space)
        pairs = [
            frozenset(re.findall(r'"([^"]+)"\."key"', line))
            for line in text.splitlines()
            if line[:4] == "Ref:"
        ]
        assert len(set(pairs)) == len(pairs)
        assert {name for pair in pairs for name in pair} <= set(tables)


def test_an_acl_file_has_a_line_for_each_role_that_the_server_takes(redis_url: str) -> None:
    lines = generated("acl", load_model("meetup")).splitlines()
    users = [line.split()[1] for line in lines]
    assert users == ["meetup-reader", "meetup-writer", "meetup-auditor"]
    with redis.Redis.from_url(redis_url) as server:
        for line in lines:
            _, user, *rules = line.replace("PASSWORD-SHA256", "0" * 64).split(" ")
            selectors = " ".join(rules).replace("sanitize-payload ", "")
            try:
                assert server.execute_command("ACL", "SETUSER", user, *_rules(selectors)) in (b"OK", True)
            finally:
                server.execute_command("ACL", "DELUSER", user)
    with pytest.raises(UsageError, match="not a server that rules are for"):
        generated("acl", options={"server": "5.0"})
    with pytest.raises(UsageError, match="It takes server"):
        generated("acl", options={"sever": "7.0"})


def _rules(text: str) -> list[str]:
    """Return the rules of a line: a selector in parentheses is one."""
    return re.findall(r"\([^()]*\)|\S+", text)


def test_a_distribution_adds_a_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foreign_generators.py").write_text(
        "from keywright.tools.generators import Generator\n"
        "names = Generator('names', 'the names of the keys', lambda given: ' '.join("
        "key.name for space in given.schema.keyspaces for key in space.keys) + chr(10))\n"
        "other = 7\n"
    )
    info = tmp_path / "foreign_generators-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-generators\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[keywright.generators]\nnames = foreign_generators:names\nother = foreign_generators:other\n"
        "gone = nowhere:gone\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert isinstance(load_generator("names"), Generator)
    assert generated("names").startswith("Articles ArticleNames Titles")
    summaries = generator_summaries()
    assert summaries["names"] == "the names of the keys"
    assert "not a Generator" in summaries["other"]
    assert "cannot be loaded" in summaries["gone"]
    with pytest.raises(UsageError, match="there is no generator 'more'"):
        load_generator("more")

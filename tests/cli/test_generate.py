"""`keywright generate`: lists generators, and writes their files."""

from __future__ import annotations

from pathlib import Path

from invoking import invoke_keywright


def test_without_a_name_it_lists_the_generators() -> None:
    done = invoke_keywright("generate")
    assert done.exit_code == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == sorted(names)
    assert {"acl", "dbml", "grafana", "json-schema", "redis-exporter", "schema"} <= set(names)


def test_a_schema_file_stands_for_its_model(tmp_path: Path) -> None:
    file = tmp_path / "meetup.json"
    assert invoke_keywright("generate", "schema", "meetup", "-o", str(file)).exit_code == 0
    assert invoke_keywright("generate", "schema", str(file)).stdout == file.read_text()
    for name in ("redis-exporter", "dbml", "acl", "json-schema", "prometheus"):
        made = [invoke_keywright("generate", name, model).stdout for model in ("meetup", str(file))]
        assert made[0] == made[1] != "", name
    assert invoke_keywright("diff", "meetup", "--lock", str(file)).stdout == "meetup: nothing changed.\n"


def test_invalid_arguments_of_generate_are_usage_errors(tmp_path: Path) -> None:
    former = tmp_path / "former.json"
    former.write_text('{"format": 1, "model": {"name": "old", "spaces": []}}')
    for arguments, message in (
        (("nothing", "meetup"), "there is no generator 'nothing'. Use one of acl"),
        (("schema",), "schema needs a model"),
        (("schema", "nowhere"), "does not name a model"),
        (("schema", str(tmp_path / "none.json")), "cannot be read"),
        (("schema", str(former)), "is of a former format"),
        (("acl", "meetup", "--option", "server"), "--option must be NAME=VALUE"),
        (("acl", "meetup", "--option", "servers=7.0"), "has no option"),
        (("acl", "meetup", "--max-bytes", "*=1G"), "takes no budgets"),
        (("asyncapi", "meetup"), "has no streams and no channels"),
        (("schema", "meetup", "-o", str(tmp_path / "no" / "file")), "cannot be written"),
    ):
        done = invoke_keywright("generate", *arguments)
        assert done.exit_code == 2, (arguments, done.output)
        assert message in " ".join(done.stderr.split()), (arguments, done.stderr)

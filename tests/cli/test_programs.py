"""Programs of the catalogue in commands: by name, in inferred modules, and not among installed models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis

from inferred_modules import refuse_code
from invoking import Invoke
from keywright.tools.plugins import model_names, program_names

UUID = "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"
MESSAGE = '{"body": "", "content-encoding": null, "content-type": null, "headers": {}, "properties": {}}'
RESULT = {
    "status": "SUCCESS",
    "result": 3,
    "traceback": None,
    "children": [],
    "date_done": None,
    "task_id": "1",
}


@pytest.fixture
def shared(redis_url: str) -> str:
    """A database of an application and Celery."""
    with redis.Redis.from_url(redis_url) as client:
        client.sadd("_kombu.binding.celery", "celery\x06\x16\x06\x16celery")
        client.lpush("celery", MESSAGE)
        client.lpush("slow\x06\x163", MESSAGE)
        client.set(f"celery-task-meta-{UUID}", json.dumps(RESULT))
        for n in range(20):
            client.set(f"user:{n}:visits", n)
    return redis_url


def test_the_catalogue_is_not_among_the_installed_models() -> None:
    assert {"bullmq", "celery", "django", "dramatiq", "rq"} <= set(program_names())
    assert set(program_names()).isdisjoint(model_names())


def test_an_unknown_name_is_answered_with_the_catalogue(invoke: Invoke) -> None:
    done = invoke("check", "celeri")
    assert done.exit_code == 2
    assert f"in the catalogue: {', '.join(program_names())})." in done.stderr


def test_commands_take_a_program_by_name(invoke: Invoke, shared: str) -> None:
    with redis.Redis.from_url(shared) as client:
        client.delete(*client.keys("user:*"))
    audited = invoke("audit", "celery", "--url", shared, "--format", "json")
    assert (audited.exit_code, audited.stderr) == (0, ""), audited.output
    counted = json.loads(invoke("stats", "celery", "--url", shared, "--format", "json").stdout)
    rows = {row["template"]: row["keys"] for row in counted["templates"] if row["keys"]}
    assert rows["<queue>"] == rows[r"<queue>\x06\x16<priority>"] == rows["celery-task-meta-<task>"] == 1
    found = invoke("get", "celery", f"celery-task-meta-{UUID}", "--url", shared)
    assert '"SUCCESS"' in found.stdout
    assert "The result of a task." in invoke("docs", "celery").stdout
    assert invoke("check", "rq,celery,bullmq").exit_code == 0
    assert invoke("check", "rq,celery,django").exit_code == 0
    assert "overlapping-keyspaces" in invoke("check", "celery,dramatiq").stdout  # both have a fallback


def test_a_module_refers_to_a_program_and_is_audited_with_it(
    invoke: Invoke, shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("infer", "--url", shared, "-o", "shared_schema.py", "--space", "shop")
    assert done.exit_code == 0, done.output
    assert "4 keys are Celery, in the catalogue as celery:" in done.stderr
    text = Path("shared_schema.py").read_text()
    refuse_code(text)
    assert "celery-task-meta" not in text
    assert "keywright audit MODULE:shop,celery" in text
    assert invoke("check", "shared_schema:shop").exit_code == 0
    audited = invoke("audit", "shared_schema:shop,celery", "--url", shared, "--format", "json")
    assert (audited.exit_code, audited.stderr) == (0, ""), audited.output


def test_no_catalogue_guesses_all_keys(invoke: Invoke, shared: str) -> None:
    done = invoke("infer", "--url", shared, "--no-catalogue")
    assert done.exit_code == 0, done.output
    assert "24 of 24 keys, 100.00%, match" in done.stderr
    assert "List[Annotated[" in done.stdout  # a queue
    assert "catalogue" not in done.stdout + done.stderr


def test_stats_without_a_model_count_the_templates_of_a_program(invoke: Invoke, shared: str) -> None:
    done = invoke("stats", "--url", shared, "--format", "json")
    assert done.exit_code == 0, done.output
    assert "4 keys are Celery, in the catalogue as celery:" in done.stderr
    counted = json.loads(done.stdout)
    rows = {row["template"]: row["keys"] for row in counted["templates"] if row["keys"]}
    assert rows == {
        "user:<user>:visits": 20,
        "<queue>": 1,
        r"<queue>\x06\x16<priority>": 1,
        "_kombu.binding.<exchange>": 1,
        "celery-task-meta-<task>": 1,
    }


def test_an_update_appends_programs_once(
    invoke: Invoke, shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("grown_schema.py")
    assert (
        invoke("infer", "--names", "-", "-o", path.name, stdin="user:1:visits\nuser:2:visits\n").exit_code
        == 0
    )
    before = path.read_bytes()
    done = invoke("infer", "--url", shared, "--update", path.name)
    assert (done.exit_code, "4 keys are Celery" in done.stderr) == (0, True), done.output
    with_celery = path.read_bytes()
    assert with_celery.startswith(before)
    done = invoke("infer", "--url", shared, "--update", path.name)
    assert "24 of 24 keys were declared; 0 new templates" in done.stderr
    assert path.read_bytes() == with_celery
    with redis.Redis.from_url(shared) as client:
        client.sadd("rq:queues", "rq:queue:default")
    done = invoke("infer", "--url", shared, "--update", path.name)
    assert (done.exit_code, "1 key is RQ, in the catalogue as rq:" in done.stderr) == (0, True), done.output
    after = path.read_text()
    refuse_code(after)
    assert after.endswith('audit MODULE:inferred,rq"""\n')
    assert "programs = programs + (rq_program,)" in after
    audited = invoke("audit", "grown_schema:inferred,celery,rq", "--url", shared, "--format", "json")
    assert (audited.exit_code, audited.stderr) == (0, ""), audited.output

"""A package of a third party adds a model and commands by its entry points, as the systems do."""

from __future__ import annotations

import re
import signal
import urllib.request
from textwrap import dedent

import pytest
import redis

from environments import ROOT, Environment, build_wheels

PROJECT = """
    [build-system]
    requires = ["hatchling>=1.25"]
    build-backend = "hatchling.build"

    [project]
    name = "greenhouse"
    version = "1.0"
    dependencies = ["keywright[cli]"]

    [project.entry-points."keywright.models"]
    greenhouse = "greenhouse.schema:greenhouse"

    [project.entry-points."keywright.catalogue"]
    potting = "greenhouse.potting:program"

    [project.entry-points."keywright.commands"]
    water = "greenhouse.commands:water"
    prune = "greenhouse.shears:prune"
    sow = "greenhouse.commands:sow"
"""

SCHEMA = '''
    """What grows where."""

    from keywright import Id, Keyspace, Set, Value, many_to_one

    greenhouse = Keyspace("greenhouse", "Plants and the beds they stand in.")


    class BedOf(Value[Id], key="plant:<plant>:bed", space=greenhouse):
        """The bed in which a plant stands."""

        plant: Id


    class Plants(Set[Id], key="bed:<bed>:plants", space=greenhouse):
        """The plants of a bed."""

        bed: Id


    beds = many_to_one(BedOf, inverse=Plants)
'''

POTTING = '''
    """Software of others, which this package declares."""

    from keywright import Id, Keyspace, Value
    from keywright.tools import Program

    potting = Keyspace("potting", "Machines that fill pots.")


    class Machine(Value[str], key="potting-machine-<machine>", space=potting):
        """What a machine does."""

        machine: Id


    program = Program("potting", "Potting", "1.2", (potting,), distinctive=(Machine,))
'''

COMMANDS = '''
    """The commands of the greenhouse."""

    from greenhouse.schema import Plants
    from keywright import connect
    from keywright.cli import EmbeddedOption, UrlOption, echo, server_url


    def water(bed: str, url: UrlOption = None, embedded: EmbeddedOption = None) -> None:
        """Water every plant of a bed."""
        with connect(server_url(url, embedded)) as db:
            echo(f"watered: {', '.join(sorted(db.run(Plants(bed).members())))}")
'''


@pytest.fixture(scope="module")
def greenhouse(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the explorer and a foreign package, without any system."""
    source = tmp_path_factory.mktemp("greenhouse")
    package = source / "greenhouse"
    package.mkdir()
    (source / "pyproject.toml").write_text(dedent(PROJECT))
    (package / "__init__.py").touch()
    (package / "schema.py").write_text(dedent(SCHEMA).lstrip())
    (package / "commands.py").write_text(dedent(COMMANDS).lstrip())
    (package / "potting.py").write_text(dedent(POTTING).lstrip())
    (package / "shears.py").write_text("import secateurs\n")
    wheels = build_wheels(tmp_path_factory.mktemp("wheels"), ROOT, source)
    folder = tmp_path_factory.mktemp("environment")
    return Environment.create(folder, f"{wheels['keywright']}[explorer]", wheels["greenhouse"])


@pytest.fixture
def planted(greenhouse: Environment, redis_url: str) -> str:
    done = greenhouse.python(
        f"from keywright import connect; from greenhouse.schema import beds\n"
        f"with connect({redis_url!r}) as db: db.run(beds.assign('rose', 'south'))"
    )
    assert (done.returncode, done.stderr) == (0, "")
    return redis_url


def test_its_model_is_checked_by_name(greenhouse: Environment) -> None:
    done = greenhouse.keywright("check", "greenhouse")
    assert (done.returncode, done.stderr) == (0, "")
    assert "greenhouse" in done.stdout


def test_its_model_is_documented(greenhouse: Environment) -> None:
    done = greenhouse.keywright("docs", "greenhouse")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The bed in which a plant stands." in done.stdout


def test_its_model_is_audited(greenhouse: Environment, planted: str) -> None:
    assert greenhouse.keywright("audit", "greenhouse", "--url", planted).returncode == 0
    with redis.Redis.from_url(planted) as client:
        client.srem("bed:south:plants", "rose")
    done = greenhouse.keywright("audit", "greenhouse", "--url", planted)
    assert done.returncode == 1
    assert "KW402" in done.stdout


def test_its_keys_are_read_by_the_name_of_the_model(greenhouse: Environment, planted: str) -> None:
    done = greenhouse.keywright("get", "greenhouse", "plant:rose:bed", "--url", planted)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"south"' in done.stdout


def test_its_model_is_explored(greenhouse: Environment, planted: str) -> None:
    with greenhouse.start("keywright", "explore", "greenhouse", "--port", "0", "--url", planted) as explorer:
        try:
            assert explorer.stdout is not None
            address = explorer.stdout.readline().removeprefix("exploring at ").strip()
            with urllib.request.urlopen(f"{address}/key?name=plant:rose:bed", timeout=30) as page:
                assert "The bed in which a plant stands." in page.read().decode()
        finally:
            explorer.send_signal(signal.SIGINT)
    assert explorer.returncode == 0


def test_its_commands_are_listed_beside_the_librarys_own(greenhouse: Environment) -> None:
    done = greenhouse.keywright("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^\s*water\s+Water every plant of a bed\.$", done.stdout, re.MULTILINE)
    assert re.search(r"^\s*audit\s", done.stdout, re.MULTILINE)


def test_its_command_runs(greenhouse: Environment, planted: str) -> None:
    done = greenhouse.keywright("water", "south", "--url", planted)
    assert (done.returncode, done.stdout, done.stderr) == (0, "watered: rose\n", "")


def test_a_command_that_cannot_be_loaded_is_listed_as_such_and_refused(greenhouse: Environment) -> None:
    listed = greenhouse.keywright("--help").stdout
    assert re.search(r"^\s*prune\s+\(not available\) 'prune' needs secateurs", listed, re.MULTILINE)
    for arguments in ((), ("--help",), ("--hard", "rose")):
        done = greenhouse.keywright("prune", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "error: 'prune' needs secateurs, which is not installed. "
            "Install it with: pip install greenhouse\n"
        )


def test_an_entry_point_that_names_nothing_is_refused(greenhouse: Environment) -> None:
    done = greenhouse.keywright("sow")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: 'sow' of greenhouse cannot be loaded: AttributeError: ")
    assert done.stderr.endswith(". Upgrade or uninstall greenhouse.\n")


@pytest.mark.parametrize(
    ("arguments", "subject", "distribution"),
    [
        (("broker", "publish", "X"), "the command 'broker'", "keywright-messaging"),
        (("check", "drc"), "the model 'drc'", "keywright-discord"),
        (("audit", "celery"), "the model 'celery'", "keywright-catalogue"),
        (("get", "openmod", "a"), "the model 'openmod'", "keywright-openmod"),
        (("explore", "meetup"), "the model 'meetup'", "keywright-meetup"),
        (("registry", "--help"), "the command 'registry'", "keywright-registry"),
    ],
)
def test_a_system_that_is_not_installed_is_named_with_its_distribution(
    greenhouse: Environment, arguments: tuple[str, ...], subject: str, distribution: str
) -> None:
    done = greenhouse.keywright(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"error: {subject} is not installed. Install it with: pip install {distribution}\n",
    )


def test_an_unknown_model_is_answered_with_those_that_are_installed(greenhouse: Environment) -> None:
    done = greenhouse.keywright("check", "orchard")
    assert (done.returncode, done.stdout) == (2, "")
    assert "or the name of an installed model (greenhouse; in the catalogue: potting)." in done.stderr


def test_its_program_is_audited_by_name_and_recognised(greenhouse: Environment, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set("potting-machine-1", "digs")
    done = greenhouse.keywright("audit", "potting", "--url", redis_url)
    assert (done.returncode, done.stderr) == (0, "")
    done = greenhouse.keywright("infer", "--url", redis_url)
    assert done.returncode == 0
    assert "1 key is Potting, in the catalogue as potting:" in done.stderr
    assert "from greenhouse.potting import program as potting_program" in done.stdout

"""What a wheel brings when it is installed, and what is said where an extra or a system is missing."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from scripts import sbom, version

from environments import ROOT, Environment, build_wheels

README = ROOT / "README.md"

SERVER = "the server of the test"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The library, and the systems whose extras are tested."""
    systems = [ROOT / "systems" / name for name in ("service", "messaging", "openmod", "registry")]
    return build_wheels(tmp_path_factory.mktemp("wheels"), ROOT, *systems)


@pytest.fixture(scope="module")
def bare(wheels: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The library alone."""
    return Environment.create(tmp_path_factory.mktemp("bare"), wheels["keywright"])


@pytest.fixture(scope="module")
def without_extras(wheels: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Messaging and the registry without their extras, and Open Mod without its dependencies."""
    openmod = wheels["keywright-openmod"]
    others = [path for path in wheels.values() if path != openmod]
    created = Environment.create(tmp_path_factory.mktemp("without_extras"), *others)
    created.install(openmod, dependencies=False)
    return created


def distributions(environment: Environment) -> set[str]:
    listed = environment.python(
        "from importlib.metadata import distributions\n"
        "print(*{each.name.lower() for each in distributions()}, sep='\\n')"
    )
    assert listed.returncode == 0, listed.stderr
    return set(listed.stdout.split())


def test_the_library_brings_three_distributions(bare: Environment) -> None:
    assert distributions(bare) == {"keywright", "hiredis", "msgspec", "redis"}


def test_the_bill_of_materials_lists_what_is_installed_and_what_is_vendored(
    bare: Environment, tmp_path: Path
) -> None:
    written = sbom.write(sbom.inventory(bare.folder), tmp_path / "bill.json")
    document = json.loads(written.read_text())
    packages = {each["name"]: each["purl"].partition("@")[0] for each in document["components"]}
    python = {name: f"pkg:pypi/{name}" for name in ("hiredis", "msgspec", "redis")}
    assert packages == {**python, "htmx.org": "pkg:npm/htmx.org"}
    assert all(each["version"] and each["licenses"] for each in document["components"])
    own = document["metadata"]["component"]
    assert (own["name"], own["version"]) == ("keywright", str(version.current()))
    (needed,) = (each["dependsOn"] for each in document["dependencies"] if each["ref"] == own["bom-ref"])
    assert [each.partition("==")[0].partition("@")[0] for each in needed] == sorted(packages)


def test_a_bill_of_materials_that_is_not_valid_is_not_written(tmp_path: Path) -> None:
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"name": "no type"}]}
    with pytest.raises(RuntimeError, match="the document is not valid"):
        sbom.write(document, tmp_path / "bill.json")
    assert list(tmp_path.iterdir()) == []


PUBLIC = ("keywright", "keywright.errors", "keywright.operations", "keywright.testing", "keywright.tools")


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_of_the_library_needs_no_extra(bare: Environment, module: str) -> None:
    names = f"import {module} as module\nfor name in module.__all__: getattr(module, name)"
    done = bare.python(names)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_sample_of_the_readme_runs_with_the_library_alone(bare: Environment, redis_url: str) -> None:
    blocks = README.read_text().split("```python\n")[1:]
    sample = "\n".join(block.partition("```")[0] for block in blocks)
    done = bare.python(sample, REDIS_URL=redis_url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Dungeon night" in done.stdout


@pytest.mark.parametrize("arguments", [("--help",), (), ("check", "shop:shop")])
def test_the_command_line_names_its_extra(bare: Environment, arguments: tuple[str, ...]) -> None:
    done = bare.keywright(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: the command line needs typer, which is not installed. "
        "Install it with: pip install 'keywright[cli]'\n"
    )


@pytest.mark.parametrize(
    ("code", "requirement"),
    [
        ("Keyring.generate('k1').seal(b'value', b'template')", "keywright[sealed]"),
        ("Lz4(Json(str)).encode('long' * 100)", "keywright[lz4]"),
        ("Zstd(Json(str)).encode('long' * 100)", "keywright[zstd]"),
        (
            "OpenTelemetryObserver()",
            "keywright[telemetry]",
        ),
        ("import keywright.explorer", "keywright[explorer]"),
        ("import keywright.testing.plugin", "keywright[testing]"),
    ],
)
def test_a_feature_of_the_library_names_its_extra(bare: Environment, code: str, requirement: str) -> None:
    done = bare.python(f"from keywright import *\n{code}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("keywright.errors.MissingDependencyError: ")
    assert done.stderr.endswith(f"which is not installed. Install it with: pip install '{requirement}'\n")


@pytest.mark.parametrize(
    ("arguments", "feature", "requirement"),
    [
        (
            ("broker", "publish", "X", "--broker", "amqp://localhost"),
            "an AMQP broker",
            "keywright-messaging[amqp]",
        ),
        (
            ("registry", "counts", "a/b", "--url", SERVER, "--database", "postgresql://localhost/registry"),
            "a PostgreSQL database",
            "keywright-registry[postgresql]",
        ),
        (("explore", "registry"), "the explorer", "keywright[explorer]"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    without_extras: Environment,
    redis_url: str,
    arguments: tuple[str, ...],
    feature: str,
    requirement: str,
) -> None:
    done = without_extras.keywright(*(redis_url if each is SERVER else each for each in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {feature} needs ")
    assert done.stderr.endswith(f", which is not installed. Install it with: pip install '{requirement}'\n")
    assert done.stderr.count("\n") == 1


def test_a_system_without_its_dependencies_names_itself(without_extras: Environment) -> None:
    done = without_extras.keywright(
        "openmod",
        "serve",
        REDIS_URL="redis://localhost",
        OPENMOD_SUBREDDIT="garden",
        OPENMOD_TARGET_SUBREDDIT="gardenlog",
        REDDIT_CLIENT_ID="id",
        REDDIT_CLIENT_SECRET="secret",
        REDDIT_USERNAME="gardener",
        REDDIT_PASSWORD="password",
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: `keywright openmod` needs a")
    assert done.stderr.endswith(", which is not installed. Install it with: pip install keywright-openmod\n")


@pytest.mark.parametrize(
    ("arguments", "distribution"),
    [
        (("discord", "get", "guild", "1"), "keywright-discord"),
        (("check", "drc"), "keywright-discord"),
        (("audit", "registry,meetup"), "keywright-meetup"),
        (("up",), "keywright-demo"),
    ],
)
def test_a_system_that_is_not_installed_is_named(
    without_extras: Environment, arguments: tuple[str, ...], distribution: str
) -> None:
    done = without_extras.keywright(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f" is not installed. Install it with: pip install {distribution}\n")
    assert done.stderr.count("\n") == 1


def test_a_wheel_has_the_pages_of_findings(wheels: dict[str, str], bare: Environment) -> None:
    with zipfile.ZipFile(wheels["keywright"]) as wheel:
        shipped = {name for name in wheel.namelist() if name.startswith("keywright/findings/")}
    assert {f"keywright/findings/{page.name}" for page in (ROOT / "docs/findings").iterdir()} == shipped
    done = bare.python(
        "from keywright.tools.finding_pages import page_named\nprint(page_named('KW402').text[:5])"
    )
    assert (done.returncode, done.stdout) == (0, "# KW4\n"), done.stderr

"""The names that users import."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from types import ModuleType

import keywright
import keywright.engine
import keywright.keyspace
import keywright.tools


def _sorted_as_ruff_does(names: list[str]) -> list[str]:
    constants = [name for name in names if name.isupper()]
    classes = [name for name in names if name[0].isupper() and not name.isupper()]
    rest = [name for name in names if name[0].islower()]
    return [*sorted(constants), *sorted(classes), *sorted(rest)]


def test_every_exported_name_can_be_imported() -> None:
    assert [name for name in keywright.__all__ if not hasattr(keywright, name)] == []


def test_exports_are_those_of_the_keyspace_and_the_engine() -> None:
    assert set(keywright.__all__) == {*keywright.keyspace.__all__, *keywright.engine.__all__}
    assert len(keywright.__all__) == len(set(keywright.__all__))


def test_exports_are_sorted() -> None:
    for package in (keywright, keywright.keyspace, keywright.engine, keywright.tools):
        assert list(package.__all__) == _sorted_as_ruff_does(list(package.__all__))


def test_a_tool_is_not_hidden_by_the_module_of_its_name() -> None:
    found = [getattr(keywright.tools, name) for name in keywright.tools.__all__]
    assert [each for each in found if isinstance(each, ModuleType)] == []
    modules = {module.name for module in pkgutil.iter_modules(keywright.tools.__path__)}
    assert modules & set(keywright.tools.__all__) == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(keywright, "nonsense")


def test_a_declaration_does_not_import_the_client() -> None:
    script = "import sys, keywright; keywright.Keyspace('a', 'b'); sys.exit('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_tool_is_not_hidden_by_a_module_of_its_name() -> None:
    script = "import keywright.tools.purger; from keywright.tools import purge; purge.__code__"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0

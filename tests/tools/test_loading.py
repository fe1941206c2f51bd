"""Loading a keyspace by MODULE:ATTRIBUTE, or an error with the remedy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from keywright.errors import DeclarationError, UsageError
from keywright.tools.loader import load_keyspace


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a current folder; modules that are imported from it are removed after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def test_a_keyspace_is_loaded_from_the_current_folder(folder: Path) -> None:
    (folder / "shop_a.py").write_text("import keywright\nshop = keywright.Keyspace('shop', '')\n")
    assert load_keyspace("shop_a:shop").name == "shop"


def test_a_module_may_import_its_neighbours(folder: Path) -> None:
    (folder / "ids_b.py").write_text("NAME = 'shop'\n")
    (folder / "shop_b.py").write_text("import keywright, ids_b\nshop = keywright.Keyspace(ids_b.NAME, '')\n")
    assert load_keyspace("shop_b:shop").name == "shop"


def test_a_file_of_the_current_folder_does_not_stand_in_for_an_installed_module(folder: Path) -> None:
    (folder / "neighbour_f.py").write_text("")
    (folder / "colorsys.py").write_text("raise RuntimeError('imported from the current folder')\n")
    (folder / "shop_f.py").write_text(
        "import keywright, neighbour_f, colorsys\n"
        "shop = keywright.Keyspace(colorsys.rgb_to_yiq.__name__, '')\n"
    )
    assert load_keyspace("shop_f:shop").name == "rgb_to_yiq"


@pytest.mark.parametrize("name", ["shop", "shop:", ":shop", ""])
def test_a_name_without_module_or_attribute_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="Write MODULE:ATTRIBUTE"):
        load_keyspace(name)


@pytest.mark.parametrize("name", ["nowhere_at_all:shop", "nowhere.at.all:shop", "json.nowhere:shop"])
def test_a_missing_module_is_named(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="there is no module"):
        load_keyspace(name)


def test_a_missing_import_of_the_module_is_distinguished_from_a_missing_module(folder: Path) -> None:
    (folder / "shop_c.py").write_text("import nowhere_at_all\n")
    with pytest.raises(UsageError, match="'shop_c' imports 'nowhere_at_all', which is not installed"):
        load_keyspace("shop_c:shop")


def test_a_module_that_fails_says_how(folder: Path) -> None:
    (folder / "shop_d.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match="cannot be imported: ZeroDivisionError: division by zero"):
        load_keyspace("shop_d:shop")


def test_a_module_with_a_syntax_error_says_so(folder: Path) -> None:
    (folder / "shop_e.py").write_text("def\n")
    with pytest.raises(UsageError, match="SyntaxError"):
        load_keyspace("shop_e:shop")


def test_a_wrong_attribute_is_answered_with_the_right_one(folder: Path) -> None:
    (folder / "shop_f.py").write_text(
        "import keywright\nPORT = 80\nshop = keywright.Keyspace('shop', '')\nPORT = 80\n"
    )
    with pytest.raises(UsageError, match=r"has nothing of that name\. Use shop_f:shop\."):
        load_keyspace("shop_f:orders")
    with pytest.raises(UsageError, match="holds a int there"):
        load_keyspace("shop_f:PORT")


def test_a_module_without_keyspaces_says_so(folder: Path) -> None:
    with pytest.raises(UsageError, match="It declares no keyspace at all"):
        load_keyspace("json:shop")


def test_a_refused_declaration_stays_one(folder: Path) -> None:
    (folder / "shop_g.py").write_text("import keywright\nkeywright.Keyspace('', '')\n")
    with pytest.raises(DeclarationError, match="has no name"):
        load_keyspace("shop_g:shop")

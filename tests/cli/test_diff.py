"""`keywright diff`: two declarations, a lock file, or a revision of git."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from invoking import invoke_keywright

SHOP = """
from keywright import Id, Keyspace, Value
shop = Keyspace("shop", "What the shop sells.")
class Price(Value[{value}], key="price:<item>", space=shop):
    "What an item costs."
    item: Id
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "meetup.lock.json"
    assert invoke_keywright("diff", "meetup", "--lock", str(path), "--write").exit_code == 0
    return path


def _edited(lock: Path, old: str, new: str) -> None:
    text = lock.read_text()
    assert old in text
    lock.write_text(text.replace(old, new))


def test_a_lock_file_that_is_current_is_fine(lock: Path) -> None:
    done = invoke_keywright("diff", "meetup", "--lock", str(lock))
    assert (done.exit_code, done.stdout) == (0, "meetup: nothing changed.\n")


def test_a_breaking_change_fails_and_is_locked_only_with_yes(lock: Path) -> None:
    _edited(lock, '"source": "csrf:<cookie>"', '"source": "csrf-token:<cookie>"')
    before = lock.read_text()
    for arguments in ((), ("--write",)):
        done = invoke_keywright("diff", "meetup", "--lock", str(lock), *arguments)
        assert done.exit_code == 1
        assert "stored keys are not found" in done.stdout
        assert "Declare moved_from='csrf-token:<cookie>'" in done.stdout
        assert lock.read_text() == before
    assert invoke_keywright("diff", "meetup", "--lock", str(lock), "--write", "--yes").exit_code == 0
    assert invoke_keywright("diff", "meetup", "--lock", str(lock)).stdout == "meetup: nothing changed.\n"


def test_a_compatible_change_passes_and_asks_for_a_new_lock(lock: Path) -> None:
    _edited(lock, '"ttl_ms": 600000', '"ttl_ms": 540000')
    done = invoke_keywright("diff", "meetup", "--lock", str(lock), "--format", "json")
    assert done.exit_code == 0
    assert "Update it with --write" in done.stderr
    assert [change["severity"] for change in json.loads(done.stdout)["changes"]] == ["compatible"]
    assert invoke_keywright("diff", "meetup", "--lock", str(lock), "--write").exit_code == 0
    assert invoke_keywright("diff", "meetup", "--lock", str(lock)).stderr == ""


def test_lock_files_compare_with_each_other_and_with_the_present(lock: Path) -> None:
    assert invoke_keywright("diff", str(lock), str(lock)).exit_code == 0
    assert invoke_keywright("diff", f"meetup@{lock}", "meetup").exit_code == 0


def test_a_revision_of_git_is_compared_with_the_present(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True)

    module = tmp_path / "diff_shop.py"
    git("init")
    module.write_text(SHOP.replace("{value}", "str"))
    git("add", ".")
    git("commit", "-m", "one")
    module.write_text(SHOP.replace("{value}", "int"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = invoke_keywright("diff", "diff_shop:shop@HEAD", "diff_shop:shop")
    assert done.exit_code == 1
    assert "what it holds is a signed 64-bit integer, no longer UTF-8 text" in done.stdout
    assert invoke_keywright("diff", "diff_shop:shop@HEAD", "diff_shop:shop@HEAD").exit_code == 0
    unknown = invoke_keywright("diff", "diff_shop:shop@nowhere", "diff_shop:shop")
    assert unknown.exit_code == 2
    assert "no revision or file is called 'nowhere'" in unknown.stderr


def test_invalid_arguments_of_diff_are_usage_errors(lock: Path, tmp_path: Path) -> None:
    for arguments in (
        ("meetup",),
        ("meetup", "meetup", "--write"),
        ("meetup", "meetup", "--lock", str(lock)),
        ("meetup", "--lock", str(tmp_path / "none.json")),
        ("meetup@--help", "meetup"),
        ("meetup", "--lock", str(tmp_path / "no" / "folder.json"), "--write"),
    ):
        assert invoke_keywright("diff", *arguments).exit_code == 2, arguments

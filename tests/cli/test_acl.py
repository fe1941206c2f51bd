"""`keywright acl`: rules as a command or as a line of a file, and never a password."""

from __future__ import annotations

from invoking import invoke_keywright


def test_options_name_the_user_the_prefix_the_server_and_the_password() -> None:
    options = ("--user", "bot", "--prefix", "my", "--server", "6.2", "--password-hash", "0" * 64)
    done = invoke_keywright("acl", "meetup", "--role", "reader", "--format", "aclfile", *options)
    assert done.stdout.startswith(f"user bot on sanitize-payload #{'0' * 64} resetchannels -@all ")
    assert " ~my:meetup_events " in done.stdout
    assert "(" not in done.stdout


def test_a_password_in_clear_is_refused_without_being_printed() -> None:
    done = invoke_keywright("acl", "meetup", "--role", "reader", "--password-hash", "hunter2")
    assert done.exit_code == 2
    assert "hunter2" not in done.output


def test_the_role_must_be_named() -> None:
    assert invoke_keywright("acl", "meetup").exit_code == 2

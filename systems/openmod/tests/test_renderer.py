"""The public text of extracts: every action, and no effect of Markdown that users write."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright_openmod.accounts import DELETED, special_named
from keywright_openmod.actions import BanAction, CommentAction, LinkAction, ModActionType, MuteAction
from keywright_openmod.platform import Account
from keywright_openmod.renderer import (
    LONGEST_CONTENT,
    Disclosure,
    ExtractUpdateReason,
    as_text,
    render_body,
    render_title,
)
from keywright_openmod.schema import CachedComment, CachedPost

MOD, ANN = Account("t2_m", "Mod_1"), Account("t2_a", "Ann")
TITLES: dict[ModActionType, str] = {
    LinkAction.REMOVE_LINK: "removed a post from",
    LinkAction.SPAM_LINK: "marked a post as spam in",
    LinkAction.APPROVE_LINK: "approved a post in",
    CommentAction.REMOVE_COMMENT: "removed a comment from",
    CommentAction.SPAM_COMMENT: "marked a comment as spam in",
    CommentAction.APPROVE_COMMENT: "approved a comment in",
    BanAction.BAN_USER: "banned a user from",
    BanAction.UNBAN_USER: "unbanned a user from",
    MuteAction.MUTE_USER: "muted a user in",
    MuteAction.UNMUTE_USER: "unmuted a user in",
}
POST = CachedPost(
    type="post",
    title="A title",
    url="https://example.org/x",
    body="Some\ntext",
    permalink="/r/cats/comments/1/a_title/",
)


def body(reason: ExtractUpdateReason, content: CachedPost | CachedComment | None = POST) -> str:
    disclosure = Disclosure(action=LinkAction.REMOVE_LINK, moderator=MOD, author=ANN, content=content)
    return render_body(disclosure, reason)


@pytest.mark.parametrize("action", TITLES, ids=str)
def test_a_title_names_the_moderator_and_nobody_else(action: ModActionType) -> None:
    assert render_title(action, MOD, "cats") == f"u/Mod_1 {TITLES[action]} r/cats"


def test_a_special_account_is_named_as_reddit_shows_it() -> None:
    redacted = special_named("[ redacted ]")
    assert redacted is not None
    title = render_title(LinkAction.REMOVE_LINK, redacted, "cats")
    assert title == "Anti-Evil Operations removed a post from r/cats"


def test_a_new_extract_shows_action_moderator_author_link_and_content() -> None:
    assert body(ExtractUpdateReason.NEW) == (
        "* Action: `removelink`\n"
        "* Moderator: [Mod\\_1](https://reddit.com/user/Mod_1)\n"
        "* Author: [Ann](https://reddit.com/user/Ann)\n"
        "* Link: [\\/r\\/cats\\/comments\\/1\\/a\\_title\\/](https://reddit.com/r/cats/comments/1/a_title/)\n\n"
        "> A title\n\n"
        "> https\\:\\/\\/example\\.org\\/x\n\n"
        "> Some  \n> text"
    )


def test_an_updated_extract_has_a_notice() -> None:
    found = body(ExtractUpdateReason.UPDATED)
    assert found.startswith("**The submission was updated")
    assert found.endswith(body(ExtractUpdateReason.NEW))


def test_a_deleted_submission_is_neither_shown_nor_linked_nor_attributed() -> None:
    found = body(ExtractUpdateReason.CONTENT_DELETED)
    for secret in ("Ann", "title", "text", "example", "/r/cats"):
        assert secret not in found
    assert "Mod" in found


def test_after_an_account_is_deleted_the_content_is_shown_without_the_person() -> None:
    found = body(ExtractUpdateReason.USER_DELETED)
    for secret in ("Ann", "/r/cats"):
        assert secret not in found
    assert "> A title" in found


def test_without_a_disclosure_only_the_notice_is_shown() -> None:
    assert render_body(None, ExtractUpdateReason.CONTENT_DELETED).startswith("**The author deleted")


def test_the_target_of_a_ban_is_called_user_and_not_author() -> None:
    disclosure = Disclosure(action=BanAction.BAN_USER, moderator=MOD, author=DELETED)
    assert "* User: \\[ deleted \\]" in render_body(disclosure, ExtractUpdateReason.NEW)


@pytest.mark.parametrize("permalink", [".evil.example/x", "@evil.example/x", "evil", "https://evil.example"])
def test_a_link_leads_to_reddit_whatever_is_stored_as_the_permalink(permalink: str) -> None:
    found = body(ExtractUpdateReason.NEW, CachedComment("comment", "text", permalink))
    (address,) = re.findall(r"\* Link: .*\]\((.*)\)", found)
    assert address.startswith("https://reddit.com/")


def test_admins_are_marked() -> None:
    disclosure = Disclosure(
        action=LinkAction.SPAM_LINK, moderator=Account("t2_r", "Root", is_admin=True), author=ANN
    )
    assert "/user/Root) (Admin)" in render_body(disclosure, ExtractUpdateReason.NEW)


@pytest.mark.parametrize(
    ("written", "dangerous"),
    [
        ("hello u/someone and /u/other", r"u/\w"),
        ("see r/other", r"r/o"),
        ("https://evil.example www.evil.example", r"://|www\.e"),
        ("[click](https://evil.example)", r"(?<!\\)\]\("),
        ("# heading\n1. list\n- item\n    code", r"(?m)^> (#|1\.|-| {4})"),
        ("> quote\n>!spoiler!<", r"(?<!\\)>!"),
        ("**bold** ~~gone~~ `code` ^up | table", r"(?<!\\)[*~`^|]"),
        ("&amp; <b>", r"(?<!\\)[&<]"),
        ("u\u200b/someone", r"u/"),
        ("not a heading\n===", r"(?m)^> =+ *$"),
    ],
)
def test_markdown_in_user_text_has_no_effect(written: str, dangerous: str) -> None:
    content = CachedComment("comment", written, "/r/cats/comments/1/_/2/")
    quoted = body(ExtractUpdateReason.NEW, content).partition("\n\n")[2]
    assert not re.search(dangerous, quoted), quoted


# Characters that are not assigned are left out too: some of them are invisible.
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cn", "Cs", "Mn", "Zl", "Zp"])))
def test_text_is_shown_exactly(text: str) -> None:
    escaped = as_text(text)
    assert re.sub(r"\\(.)", r"\1", escaped) == text
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]()#+\-.!|&<>/^~:@{}]", escaped)


@given(st.text())
def test_no_text_breaks_out_of_its_quotation(text: str) -> None:
    """Every line begins as a quotation, wherever lines break."""
    content = CachedComment("comment", text, "/p")
    quoted = body(ExtractUpdateReason.NEW, content).partition("\n\n")[2]
    assert all(line.startswith("> ") for line in quoted.split("\n") if line)
    assert not re.search(r"\n\n(?!> )", quoted)


def test_a_text_too_long_for_a_post_is_cut() -> None:
    found = body(ExtractUpdateReason.NEW, CachedComment("comment", "_" * 50_000, "/p"))
    assert len(found) < 2 * LONGEST_CONTENT + 1000
    assert found.endswith("…")


@pytest.mark.parametrize("text", ["_" * 50_000, "a" + "\n" * 50_000 + "b", "_\n" * 20_000, "  =\n" * 20_000])
def test_no_text_makes_a_body_that_is_too_long_for_reddit(text: str) -> None:
    """Otherwise actions on such a text could never be published."""
    content = CachedPost(
        type="post", title="_" * 300, url="https://" + "_" * 2_000, body=text, permalink="/p"
    )
    assert len(body(ExtractUpdateReason.UPDATED, content)) < 40_000


def test_user_text_cannot_contain_the_marker_of_an_event() -> None:
    marker = f"openmod-{'0a' * 32}"
    content = CachedComment("comment", f"Reference: `{marker}`", "/p")
    assert marker not in body(ExtractUpdateReason.NEW, content)

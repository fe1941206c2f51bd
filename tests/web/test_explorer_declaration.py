"""The declaration of an inferred model, saved from the explorer."""

from __future__ import annotations

from exploring import exploring, exploring_sample, filled
from inferred_modules import declared_space, inferred_server, refuse_code
from keywright import Secret

LINK = '<a href="/declaration.py" download="schema.py">Save this declaration</a>'


def test_an_inferred_declaration_is_saved_without_ids_and_values(redis_url: str) -> None:
    filled(redis_url, "meetup")
    found = inferred_server(redis_url)
    with exploring(redis_url, [declared_space(found)], declaration=found.text) as explored:
        page = explored.surveyed().get("/").text
        saved = explored.get("/declaration.py")
    assert LINK in page
    assert saved.status_code == 200
    assert saved.headers["content-type"] == "text/x-python; charset=utf-8"
    assert saved.headers["content-disposition"] == 'attachment; filename="schema.py"'
    assert saved.headers["x-content-type-options"] == "nosniff"
    assert saved.text == found.text
    refuse_code(saved.text)
    assert not [
        text for text in ("100000000000000007", "example.org", "1000000000000000") if text in saved.text
    ]


def test_a_declaration_that_was_named_is_not_offered(redis_url: str) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        assert "Save this declaration" not in explored.get("/").text
        saved = explored.get("/declaration.py")
    assert saved.status_code == 404
    assert "its module exists already" in saved.text


def test_a_declaration_needs_the_token(redis_url: str) -> None:
    filled(redis_url, "meetup")
    found = inferred_server(redis_url)
    token = Secret("a-long-random-token-for-tests")
    with exploring(redis_url, [declared_space(found)], declaration=found.text, token=token) as explored:
        refused = explored.get("/declaration.py")
    assert refused.status_code in (303, 401, 403)
    assert "MeetupEvent" not in refused.text

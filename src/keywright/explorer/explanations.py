"""The meaning and the remedy of each finding code, in a few sentences for its page."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Explanation", "explained"]


class Explanation(NamedTuple):
    meaning: str
    remedy: str


_EXPLANATIONS = {
    "KW101": Explanation(
        "No declared template matches this name, so no code that uses the declaration reads it.",
        "Declare the key if it is yours; remove it if it is a leftover.",
    ),
    "KW102": Explanation(
        "The key has the name of an earlier version or a former name.",
        "`keywright migrate` moves all such keys.",
    ),
    "KW103": Explanation(
        "The value has an older shape. Reading it through the declaration upgrades it.",
        "A repair upgrades it now. Once none is left, the old shape can be removed from the declaration.",
    ),
    "KW201": Explanation(
        "The key has another Redis type than declared; every read of it fails.",
        "Another writer uses the name: rename one of the two, or remove the stray key.",
    ),
    "KW202": Explanation(
        "The stored bytes are malformed: the codec of the template cannot decode them, so reads fail.",
        "Correct the value, or declare the shape that it has. The intended value cannot be derived.",
    ),
    "KW203": Explanation(
        "A required member of the record is missing; reading the record fails.",
        "Write the member, or make it optional in the declaration.",
    ),
    "KW204": Explanation(
        "The value is declared as encrypted at rest, but is stored in plain text.",
        "A repair seals it with the newest key. Treat the plain text as disclosed.",
    ),
    "KW205": Explanation(
        "No key of the bound keyring decrypts the value.",
        "Bind a keyring that still has the key that sealed it.",
    ),
    "KW206": Explanation(
        "The stored value has members that the declaration does not know. Reads ignore them.",
        "Declare the members, declare the class with open=True, or let their writer remove them.",
    ),
    "KW207": Explanation(
        "The stream has no consumer group of a name that its class declares. Its consumers fail or wait.",
        "Let the consumers create it, or create it with keywright repair --create-groups.",
    ),
    "KW208": Explanation(
        "The stream has a consumer group that its class does not declare. Its entries stay pending if nobody "
        "acknowledges them.",
        "Declare the group, or delete it with XGROUP DESTROY if no program consumes with it.",
    ),
    "KW301": Explanation(
        "The key has no expiry, but is declared with one.",
        "A repair sets the declared expiry, counted from now.",
    ),
    "KW302": Explanation(
        "The expiry of the key is longer than declared.",
        "A repair shortens its expiry to the declared one.",
    ),
    "KW303": Explanation(
        "A field that the record must have will expire on its own. The record cannot be read then.",
        "Find the writer that sets it. HPERSIST removes the expiry of a field.",
    ),
    "KW304": Explanation(
        "A field has no expiry of its own, or a longer one than its declaration gives it.",
        "A repair sets the declared expiry, counted from now.",
    ),
    "KW305": Explanation(
        "A field will expire on its own. Its class declares which fields do, and it is not among them.",
        "Declare its expiry in field_expiry, or find the writer that sets it. HPERSIST removes it.",
    ),
    "KW401": Explanation(
        "The value refers to a key or entry that does not exist. A read that follows it finds nothing.",
        "Store the missing target, or remove the reference: the audit cannot decide which is wrong.",
    ),
    "KW402": Explanation(
        "The forward side of a relation has an entry that its inverse side lacks.",
        "A repair completes the inverse side.",
    ),
    "KW403": Explanation(
        "The inverse side of a relation has an entry that the forward side contradicts. Forward decides.",
        "A repair removes the entry from the inverse side.",
    ),
    "KW404": Explanation(
        "An index lists an id whose record does not exist.", "A repair removes the id from the index."
    ),
    "KW405": Explanation(
        "A record is missing from its index, so listings leave it out.",
        "A repair adds it to the index.",
    ),
    "KW501": Explanation(
        "The template has more keys or bytes than its budget.", "Raise the budget, or store less."
    ),
    "KW502": Explanation(
        "The value was not checked: it is too large, or holds secrets that this user may not read.",
        "Check it by hand. Split a large one over several keys, or let the user read secrets.",
    ),
    "KW601": Explanation(
        "An invariant of the model does not hold here. The reason begins with the name of the invariant.",
        "A repair applies the fix of the invariant, if it has one for this case.",
    ),
    "KW602": Explanation(
        "The model allows this state, but reports it.",
        "No action is needed. Check that it is intended.",
    ),
    "KW603": Explanation(
        "An invariant of the model could not be checked here: a value that it depends on cannot be read.",
        "Repair that value first: another finding names it.",
    ),
}


def explained(code: str) -> Explanation:
    """Return the explanation of a finding code; empty for an unknown code."""
    return _EXPLANATIONS.get(code, Explanation("", ""))

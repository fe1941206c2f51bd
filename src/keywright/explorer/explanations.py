"""What a finding means and what to do about it, in a few sentences for the page that shows it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Explanation", "explained"]


class Explanation(NamedTuple):
    meaning: str
    remedy: str


_EXPLANATIONS = {
    "KW101": Explanation(
        "No template of the declaration gives this name, so no code that uses the declaration reads it.",
        "Declare it if it is yours; remove it if it is a leftover.",
    ),
    "KW102": Explanation(
        "The key belongs to an earlier version of the layout, or is where keys were kept before they moved.",
        "`keywright migrate` brings all of them up to date at once.",
    ),
    "KW103": Explanation(
        "The value has a shape that was declared before. Reading it through the declaration upgrades it.",
        "A repair upgrades it now, so that the old shape can be forgotten some day.",
    ),
    "KW201": Explanation(
        "The server holds another type under this name than the declaration says; every read of it fails.",
        "Another writer uses the name: rename one of the two, or remove the stray key.",
    ),
    "KW202": Explanation(
        "The stored bytes are not what the codec of the template writes, so reading them fails.",
        "Correct the value, or declare the shape that it has. The intended value cannot be derived.",
    ),
    "KW203": Explanation(
        "A member that every record of this template must have is missing; reading the record fails.",
        "Write the member, or make it optional in the declaration.",
    ),
    "KW204": Explanation(
        "The declaration says that the value is encrypted at rest, but everyone can read it.",
        "A repair seals it with the newest key. Treat what was readable as known to others.",
    ),
    "KW205": Explanation(
        "No key of the bound keyring opens the value.",
        "Bind a keyring that still holds the key that sealed it.",
    ),
    "KW301": Explanation(
        "The declaration says that the key expires, but it has none.",
        "A repair gives it the declared expiry, counted from now.",
    ),
    "KW302": Explanation(
        "The key would live longer than the declaration allows.",
        "A repair shortens its expiry to the declared one.",
    ),
    "KW401": Explanation(
        "The value names something that is not stored. A read that follows it finds nothing.",
        "Store what is missing, or remove what refers to it: the audit cannot decide which is wrong.",
    ),
    "KW402": Explanation(
        "One side of a relation names the other, which does not name it back, so it is found one way only.",
        "A repair completes the other side.",
    ),
    "KW403": Explanation(
        "The inverse side of a relation names a key whose forward side says otherwise. Forward is the truth.",
        "A repair withdraws the entry from the inverse side.",
    ),
    "KW404": Explanation(
        "An index lists an id whose record is not there.", "A repair takes the id off the index."
    ),
    "KW405": Explanation(
        "A record is there that its index does not list, so listings leave it out.",
        "A repair adds it to the index.",
    ),
    "KW501": Explanation(
        "The template has more keys or bytes than its budget.", "Raise the budget, or store less."
    ),
    "KW502": Explanation(
        "The value is too large to be read during an audit, so it was not checked.",
        "Look at it yourself, and ask whether one key is the right place for so much.",
    ),
    "KW601": Explanation(
        "A rule that the model declares does not hold here. The reason begins with the name of the rule.",
        "A repair does what the model's own rule says, where it has one for this case.",
    ),
    "KW602": Explanation(
        "The model allows this state, but asks for it to be reported.",
        "Nothing needs to be done. Look whether it is meant to be so.",
    ),
    "KW603": Explanation(
        "A rule of the model could not be checked here: a value that it depends on cannot be read.",
        "Repair that value first: another finding names it.",
    ),
}


def explained(code: str) -> Explanation:
    """The explanation of a finding's code; an unknown code is explained by nothing."""
    return _EXPLANATIONS.get(code, Explanation("", ""))

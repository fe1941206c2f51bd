"""Former codecs: bytes of an earlier declaration are recognised and rewritten.

Bytes are old when the former codec reads them and the present one either refuses them or would write the
value differently, as where only large values are compressed. Bytes that both codecs read as different values
cannot be distinguished: `check` finds such pairs by their samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keywright.keyspace.codecs import Codec, CodecError
from keywright.keyspace.versions.upgrades import Recoding, Upgrade

if TYPE_CHECKING:
    from keywright.keyspace.fields import Member

__all__ = ["is_former", "members_recoded", "recoded"]

_REFUSED: Any = object()


def is_former(data: bytes, recoding: Recoding) -> bool:
    """Return whether bytes are of the former codec and not of the present one."""
    old = _read(recoding.former, data)
    if old is _REFUSED:
        return False
    new = _read(recoding.present, data)
    return new is _REFUSED or (new == old and recoding.present.encode(new) != data)


def recoded(present: Codec[Any], former: Codec[Any]) -> Upgrade:
    """Return the upgrade of a value from a former codec."""
    recoding = Recoding(present, former)
    return Upgrade(
        former.expected,
        lambda stored: is_former(stored, recoding),
        lambda stored, _: former.decode(stored),
        recodings=(recoding,),
    )


def members_recoded(formerly: Mapping[Member, Codec[Any]]) -> Upgrade:
    """Return the upgrade of a record whose members had former codecs; all change together."""
    recodings = {
        member.stored: Recoding(member.codec, former, member.stored) for member, former in formerly.items()
    }

    def old(stored: Mapping[bytes, bytes]) -> list[bytes]:
        return [
            name
            for name, recoding in recodings.items()
            if name in stored and is_former(stored[name], recoding)
        ]

    def convert(stored: Mapping[bytes, bytes], key: Any) -> Any:
        rewritten = {
            name: recodings[name].present.encode(recodings[name].former.decode(stored[name]))
            for name in old(stored)
        }
        return key._own_fields().read({**stored, **rewritten})

    version = ", ".join(f"{member.attribute} as {former.expected}" for member, former in formerly.items())
    return Upgrade(version, lambda stored: bool(old(stored)), convert, recodings=tuple(recodings.values()))


def _read(codec: Codec[Any], data: bytes) -> Any:
    try:
        return codec.decode(data)
    except CodecError:
        return _REFUSED

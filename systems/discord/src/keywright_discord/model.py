"""The two layouts as models for the tools: `drc` and `spectacles`."""

from __future__ import annotations

from keywright.tools import ConversionRoute, Model, ProgramChannels
from keywright_discord.drc import schema as drc_schema
from keywright_discord.spectacles import schema as spectacles_schema

__all__ = ["drc", "spectacles"]


# What a command needs of a model is mostly its keyspaces, so the rest is imported on use.
def _to_drc(prefix: str | None, to_prefix: str | None) -> ConversionRoute:
    from keywright_discord.conversion import SpectaclesToDrc
    from keywright_discord.layouts import LAYOUTS

    return ConversionRoute(
        SpectaclesToDrc(), (*LAYOUTS["spectacles"].bind(prefix), *LAYOUTS["drc"].bind(to_prefix))
    )


def _channels() -> ProgramChannels:
    from keywright_discord.channels import gateway_channels

    return gateway_channels()


drc = Model("drc", (drc_schema.drc, drc_schema.private))
spectacles = Model(
    "spectacles",
    (spectacles_schema.spectacles, spectacles_schema.private),
    conversions={"drc": _to_drc},
    channels=_channels,
)

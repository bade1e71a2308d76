"""How a cluster grows and shrinks: the policies of Koala's MapReduce runner, with the paper's constants as defaults."""

from typing import Final, Literal

from pydantic import ConfigDict, Field

from boathouse.resources.base import Model, rule, rules

Policy = Literal["Static", "GSP", "GGP", "GGDP"]
GSP_PERIOD_S: Final = 30
GREEDY_PERIOD_S: Final = 120

_STEP: Final = "(self.growBy > self.shrinkBy ? self.growBy : self.shrinkBy)"


class Resizing(Model):
    """The policy that changes the number of nodes. F is (running + pending containers) / slots."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"self.shrinkBelowPercent * (1 + {_STEP}) <= self.growAbovePercent",
                "resizing: growAbovePercent is less than shrinkBelowPercent * (1 + the larger of growBy and shrinkBy), "
                "so a cluster of one node would grow and shrink in turn: raise growAbovePercent",
            )
        )
    )
    policy: Policy = Field(
        default="Static",
        description="Static: transient.minimum nodes. GSP: grows and shrinks by F. GGP: accepts "
        "every offer of nodes, and gives them back when it has no application. GGDP: as GGP, with core nodes.",
    )
    grow_above_percent: int = Field(default=150, ge=1, le=100_000, description="GSP accepts offers while F is above.")
    shrink_below_percent: int = Field(
        default=25, ge=1, le=100_000, description="GSP gives nodes back while F is below."
    )
    grow_by: int = Field(default=5, ge=1, le=50, description="The most nodes that GSP accepts of an offer.")
    shrink_by: int = Field(default=2, ge=1, le=50, description="The most nodes that GSP gives back at a time.")
    offer_nodes: int = Field(default=2, ge=1, le=50, description="The size of an offer to GGP and GGDP.")
    period_seconds: int | None = Field(
        default=None,
        ge=5,
        le=3600,
        description=f"Between two offers. Absent: {GSP_PERIOD_S} with GSP, {GREEDY_PERIOD_S} with GGP and GGDP.",
    )
    drain_timeout_seconds: int = Field(
        default=300,
        ge=0,
        le=86400,
        description="How long the containers of a transient node that leaves may run on. Core nodes have no timeout: "
        "they leave when their blocks are copied.",
    )

    @property
    def period_s(self) -> int:
        """Return the seconds between two offers to the cluster."""
        return self.period_seconds or (GSP_PERIOD_S if self.policy == "GSP" else GREEDY_PERIOD_S)

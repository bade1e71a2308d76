"""`python -m boathouse_e2e.metrics_page`: write docs/reference/metrics.md from the leader's parts, which do not run."""

import asyncio
import sys
from typing import Any, Final, cast

from boathouse.cluster import client, config, election, events
from boathouse.leader import Leader, LeaderContext
from boathouse.options import Options
from boathouse.resources.config import OperatorConfig
from boathouse.telemetry import health, logs, metrics
from boathouse_e2e import paths

PAGE: Final = paths.REPOSITORY / "docs" / "reference" / "metrics.md"


async def page() -> str:
    """Return the page."""
    operator_metrics = metrics.Metrics()
    api = client.ApiClient(config.ClusterConfig(server="http://nowhere", namespace="boathouse-system"))
    absent = cast("Any", None)  # used only at run time, not while wiring
    Leader(
        LeaderContext(
            options=Options(config=OperatorConfig(shadow_profile="fair"), identity="page"),
            cluster=absent,
            api=api,
            state=health.Health(),
            metrics=operator_metrics,
            election=election.LeaderElection(api, namespace="boathouse-system", identity="page", on_lost=print),
            events=events.EventWriter(api, controller="boathouse.dev/scheduler", instance="page"),
            bundles=absent,
            authority=absent,
            cluster_id="",
            on_fatal=print,
            after_kopf=lambda: None,
        )
    )
    return metrics.page(operator_metrics.registry)


if __name__ == "__main__":
    logs.configure()
    PAGE.write_text(asyncio.run(page()), encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE}\n")

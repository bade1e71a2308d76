"""The laboratory for the session; a siege, with an operator's life of its own, for each test.

BOATHOUSE_CHECKOUT names another checkout, whose chart and operator are attacked instead: what did an attack do there?
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
from typing import Any

import pytest

from boathouse.cluster import client, config
from boathouse_e2e import ahead, hostile, kubelets, lab, paths
from boathouse_e2e.spec import ClusterSpec
from tests.hostile.siege import Siege

CHECKOUT = pathlib.Path(os.environ.get("BOATHOUSE_CHECKOUT") or paths.REPOSITORY)
REPORT = paths.REPOSITORY / "build" / "reports" / "hostile.json"
NODES = ClusterSpec(nodes=0, kwok_nodes=4, kwok_node_cpu=16, kwok_node_memory_mib=32 * 1024)
QUEUES = {
    "queues": [
        {"name": "default", "weight": 1, "limits": {"cpu": "64"}},
        {"name": "victims", "weight": 1, "namespaces": [hostile.VICTIM]},
    ]
}
"""The queue of everybody may use the whole cluster, and not more; the other is not for the attacker."""
ROWS = pytest.StashKey[list]()


def pytest_collection_finish(session: pytest.Session) -> None:
    ahead.build_tools(session, "helm")


def values():
    """The chart's values; an earlier version's queues do not list namespaces."""
    if CHECKOUT == paths.REPOSITORY:
        return QUEUES
    return {"queues": [{k: v for k, v in queue.items() if k != "namespaces"} for queue in QUEUES["queues"]]}


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory):
    with lab.laboratory(tmp_path_factory.mktemp("hostile"), NODES, values(), CHECKOUT) as place:
        hostile.prepare(place)
        yield place


@pytest.fixture
async def attacker(laboratory):
    """The tenant that attacks, where no operator need run."""
    async with hostile.tenant(laboratory) as one:
        yield one


@pytest.fixture
async def siege(laboratory, attacker):
    """An operator with the chart's configuration and Lease that leads, and both tenants."""
    timing = laboratory.chart_config["lease"]
    lease = lab.Lease(
        duration_s=timing["durationSeconds"],
        renew_deadline_s=timing["renewDeadlineSeconds"],
        retry_s=timing["retryPeriodSeconds"],
    )
    async with contextlib.AsyncExitStack() as stack:
        admin = await stack.enter_async_context(
            client.ApiClient(config.from_kubeconfig(laboratory.cluster.kubeconfig), user_agent="administrator")
        )
        for namespace in (hostile.ATTACKER, hostile.VICTIM):
            stack.push_async_callback(hostile.clear, admin, namespace)
        operator = stack.enter_context(
            laboratory.operator(lease=lease, settings=laboratory.chart_config, checkout=CHECKOUT)
        )
        honest = kubelets.Kubelets(admin, laboratory, hostile.VICTIM)
        attacked = hostile.HostileKubelets(admin, laboratory, hostile.ATTACKER)
        attacked.share_storage(honest)
        for namespace_kubelets in (honest, attacked):
            namespace_kubelets.operators.append(operator)
            namespace_kubelets.start()
            stack.push_async_callback(namespace_kubelets.close)
        one = Siege(laboratory, admin, attacker, honest, attacked, operator)
        stack.push_async_callback(one.close)
        await one.begin()
        yield one


@pytest.fixture
def record(request, siege):
    """Keep a row for the table at the end."""

    def keep(**row):
        memory = hostile.peak_memory_bytes(siege.operator.pid)
        request.config.stash.setdefault(ROWS, []).append(row | {"memory_mib": memory // 2**20})

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was counted and measured under each attack, printed and written to build/reports."""
    rows = terminalreporter.config.stash.get(ROWS, [])
    if not rows:
        return
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(rows, indent=1))
    for first in ("attack", "placement"):
        chosen = [{k: v for k, v in row.items() if not isinstance(v, list)} for row in rows if first in row]
        if chosen:
            terminalreporter.section(TITLES[first])
            terminalreporter.write_line(table(chosen))


TITLES = {
    "attack": "what the operator did under each attack",
    "placement": "medians: how long a job of another namespace waited to be placed, alone and beside an attack",
}


def table(rows: list[dict[str, Any]]) -> str:
    """Rows with the same keys as lines of equal columns."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_short(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(columns))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def _short(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)

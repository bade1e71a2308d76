"""Read and draw what `boathouse top` shows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich import console
from rich import live as rich_live

from boathouse_cli import kinds, node_usage, reading, tables
from boathouse_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse_cli.gateway import Gateway


def show(gateway: Gateway, operator_namespace: str, *, all_namespaces: bool, interval_s: float | None) -> None:
    """Print the tables, again after each interval; None, or an output that is no terminal: once."""
    screen = console.Console()

    def read() -> console.Group:
        return draw(gateway, operator_namespace, all_namespaces=all_namespaces, now_s=time.time())

    if interval_s is None or not screen.is_terminal:
        screen.print(read())
        return
    with rich_live.Live(read(), console=screen, screen=True, auto_refresh=False) as view:
        while True:
            time.sleep(interval_s)
            view.update(read(), refresh=True)


def draw(gateway: Gateway, operator_namespace: str, *, all_namespaces: bool, now_s: float) -> console.Group:
    """Return the tables of nodes, queues and unfinished jobs; a note for each that the user may not read.

    Raises:
        CommandError: The user may read none.
    """
    refused: list[CommandError] = []

    def read(part: Callable[[], console.RenderableType]) -> console.RenderableType:
        try:
            return part()
        except CommandError as error:
            refused.append(error)
            return f"({error})"

    def nodes() -> console.RenderableType:
        return tables.nodes(node_usage.usage(gateway.nodes(), gateway.pods("", all_namespaces=True)))

    def jobs() -> console.RenderableType:
        found = map(kinds.read, kinds.raw_jobs(gateway, all_namespaces=all_namespaces))
        active = sorted((job for job in found if not job.finished), key=lambda job: (job.queue, job.created_s))
        return tables.jobs(active, namespaces=all_namespaces, now_s=now_s)

    def shares() -> console.RenderableType:
        return tables.queues(reading.queues_of(gateway, operator_namespace))

    parts = [read(part) for part in (nodes, shares, jobs)]
    if len(refused) == len(parts):
        raise refused[0]
    return console.Group(*(line for part in parts for line in (part, "")))

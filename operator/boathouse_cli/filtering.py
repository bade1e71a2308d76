"""Which jobs `list` shows."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_cli import kinds
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_cli import model

ACTIVE: Final = "active"
FINISHED: Final = "finished"
PHASES: Final = (
    *("Pending", "Suspended", "Setup", "Map", "Reduce", "Commit", "Starting", "Running", "Restarting", "Ready"),
    *("Degraded", "Succeeded", "Failed", "Expired"),
)
"""Of all kinds; a test compares them with the custom resources, which take longer to import than a list to print."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs are shown; an empty tuple is all.

    Attributes:
        of_kinds: Kinds, by any of their names.
        queues: Names of queues.
        states: Phases in any case, `active` or `finished`.
    """

    of_kinds: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse kinds and states that do not exist.

        Raises:
            CommandError: With those that do.
        """
        self.chosen_kinds()
        known = [*(phase.lower() for phase in PHASES), ACTIVE, FINISHED]
        for state in self.states:
            if state.lower() not in known:
                raise CommandError(f'"{state}" is no state: choose from {", ".join(known)}', ExitCode.USAGE)

    def chosen_kinds(self) -> Sequence[kinds.Kind]:
        """Return the kinds to read.

        Raises:
            CommandError: There is no such kind.
        """
        return [kinds.object_target(f"{name}/any")[0] for name in self.of_kinds] or kinds.KINDS

    def takes(self, job: model.Job) -> bool:
        """Return whether a job is shown."""
        states = {(job.phase or "Pending").lower(), FINISHED if job.finished else ACTIVE}
        is_in_state = not self.states or not states.isdisjoint(map(str.lower, self.states))
        return is_in_state and (not self.queues or job.queue in self.queues)

"""The neutral choice for each extension point: what a profile has where it names nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.extension import Sized, Where
    from boathouse_policies.framework.line import Line
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.want import Want


class Submission:
    """Jobs in the order of submission."""

    def keys(self, jobs: Sequence[model.Job], scratch: Scratch) -> Sequence[float]:  # noqa: ARG002 - the protocol's
        """All equal: ties are broken by submission."""
        return [0.0] * len(jobs)


class NoPreference:
    """All nodes are equal, so the first by name wins."""

    def score(self, want: Want, scratch: Scratch, where: Where) -> model.FloatVector:  # noqa: ARG002 - the protocol's
        """Zeros."""
        return np.zeros(scratch.free.shape[1])[where]


class NoPatience:
    """Takes the best node there is."""

    def wait(self, want: Want, node: int, scratch: Scratch) -> model.Hold | None:  # noqa: ARG002 - the protocol's
        """Never waits."""
        return None


class IdealSize:
    """Each task gets what its class asks for, one at a time."""

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """The ideal."""
        return task_class.resources

    def size(self, want: Want, node: int, scratch: Scratch) -> Sized | model.Verdict:  # noqa: ARG002 - the protocol's
        """The ideal."""
        return want.ideal


class NoReserve:
    """No node is kept for anybody: work-conserving backfill."""

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:  # noqa: ARG002 - the protocol's
        """Everywhere."""
        return None

    def keep(self, want: Want, scratch: Scratch) -> Sequence[model.Hold]:  # noqa: ARG002 - the protocol's
        """Nothing."""
        return ()


class MinimumTogether:
    """The `gang_min` of all gang classes of a job start together; what is placed already counts."""

    def together(self, want: Want, line: Line, scratch: Scratch) -> Sequence[tuple[Want, int]]:
        """The missing minimum of each gang class of the job."""
        if not want.task_class.gang_min:
            return ()
        short = (
            (one, one.task_class.gang_min - scratch.placed(one.task_class.id)) for one in line.classes_of(want.job.id)
        )
        return [(one, count) for one, count in short if count > 0]


SUBMISSION = Submission()
NO_PREFERENCE = NoPreference()
NO_PATIENCE = NoPatience()
IDEAL_SIZE = IdealSize()
NO_RESERVE = NoReserve()
MINIMUM_TOGETHER = MinimumTogether()

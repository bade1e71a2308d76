"""Table 2: the metrics that the interference models know, as rows of arrays.

CPU metrics of the system are shares of the host's CPUs, I/O metrics shares of what its disks carry: so one model serves
hosts of different sizes. A task's own CPU demand is in CPUs: what matters of it is how much of its time it computes.

Deviations: there is no Dom0 under Kubernetes; c_0 is what a host's CPUs do beyond the tasks that run there, as far as
instruments show it. io_u is the share of its time that a disk is busy, as iostat's, worked out from the rates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from boathouse_policies.model import FloatVector

C_U, C_A, C_0, R_U, W_U, R_A, W_A, IO_U, T_C, T_R, T_W = range(11)
"""Rows: of the system CPU and I/O, then of the task."""

NAMES = ("c_u", "c_a", "c_0", "r_u", "w_u", "r_a", "w_a", "io_u", "t_c", "t_r", "t_w")
SYSTEM, ALL = T_C, len(NAMES)

CPU_ROWS = (T_C, C_U, C_A, C_0)
"""Of equation 1."""

IO_ROWS = (T_R, T_W, R_U, W_U, R_A, W_A, IO_U, C_0)
"""Of equation 2."""


class Demand(NamedTuple):
    """What a task uses while it is alone: t_c, t_r and t_w.

    Attributes:
        cpu: CPUs.
        read: Share of a host's disks.
        write: The same.
    """

    cpu: float
    read: float
    write: float

    def bounded(self, cpus: float) -> Demand:
        """Return no more than a host has, with so many CPUs: what a task reports may be more than any can use."""
        return Demand(min(self.cpu, cpus), min(self.read, 1.0), min(self.write, 1.0))

    @property
    def io_bound(self) -> bool:
        """Whether it is rather I/O- than CPU-bound."""
        return self.read + self.write > self.cpu


IDLE = Demand(0.0, 0.0, 0.0)


def system(node: FloatVector, host: FloatVector, beyond: FloatVector) -> FloatVector:
    """Return the system's metrics from the use.

    Args:
        node: CPU, reads and writes of each virtual machine as shares of its host, shape [3, N].
        host: The same of all virtual machines of its host together, shape [3, N].
        beyond: c_0, shape [N].

    Returns:
        Shape [8, N].
    """
    rows = np.empty((SYSTEM, node.shape[1]))
    rows[[C_U, R_U, W_U]] = node
    rows[[C_A, R_A, W_A]] = host - node
    rows[C_0] = beyond
    rows[IO_U] = np.minimum(host[1] + host[2], 1.0)
    return rows

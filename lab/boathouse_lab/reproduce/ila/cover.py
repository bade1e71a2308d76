"""How many hosts hold a job's data (4.2 "Improvement Analysis", eqs 5 and 6; appendix A).

Eq. 5 is damaged in the body, and .9 is wrong for what it is used for; this is the appendix's .11. With M virtual
machines on each of N hosts, of which P hold data of a job:

    P(Q, P) = C(N, Q) C(MQ, P) / C(MN, P) - C(N, Q) sum over i < Q of C(Q, i) / C(N, i) P(i, P)
"""

from __future__ import annotations

import math
from fractions import Fraction


def probabilities(hosts: int, machines_per_host: int, holding: int) -> dict[int, float]:
    """Return the probability that the nodes with data are on exactly Q hosts, by Q (.11).

    Args:
        hosts: N.
        machines_per_host: M, virtual machines of a host.
        holding: P, nodes with data of the job, 1..M*N.

    Raises:
        ValueError: There is no such placement.
    """
    if not 1 <= holding <= hosts * machines_per_host:
        raise ValueError(
            f"1 to {hosts * machines_per_host} of {hosts} x {machines_per_host} nodes can hold data, not {holding}"
        )
    every = math.comb(machines_per_host * hosts, holding)
    found: dict[int, Fraction] = {}
    for q in range(-(-holding // machines_per_host), hosts + 1):
        at_most = Fraction(math.comb(hosts, q) * math.comb(machines_per_host * q, holding), every)
        fewer = (Fraction(math.comb(q, i), math.comb(hosts, i)) * one for i, one in found.items())
        found[q] = at_most - math.comb(hosts, q) * sum(fewer, Fraction(0))
    return {q: float(one) for q, one in found.items()}


def expected_hosts(hosts: int, machines_per_host: int, holding: int) -> float:
    """Return the expected number of hosts that hold data, Q bar (eq. 6)."""
    return sum(q * one for q, one in probabilities(hosts, machines_per_host, holding).items())


def skips_ratio(node_share: float, host_share: float) -> float:
    """Return K_n / K_s: how many times as many offers a job must skip to get nodes with its data, not hosts.

    Args:
        node_share: p, of the nodes that hold its data, below 1.
        host_share: q, of the hosts.
    """
    return math.log1p(-host_share) / math.log1p(-node_share)

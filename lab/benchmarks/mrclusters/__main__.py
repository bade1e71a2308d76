"""Hadoop clusters on a modelled ResourceManager with sleeping tasks, in virtual time.

    python -m benchmarks.mrclusters stream [--seeds 3] [--jobs 50] [--policies Static,GSP,GGP,GGDP]
    python -m benchmarks.mrclusters core-nodes [--core 4] [--added 4] [--blocks 2000]
    python -m benchmarks.mrclusters zones [--first 12] [--second 6]

The operator is real: the kind MRCluster, the scheduler with Koala, and the agent of each master, on the fake API server
of the tests. Nodes, HDFS and YARN are models. The clock of the process is virtual (`virtual_time`), so a policy has the
periods of the paper, and an hour takes a minute or two of CPU time.

`stream` runs the jobs of the paper's Figure 5b on 20 core nodes with 20 more to grow by, for each policy, and the
simulator on the same jobs. `core-nodes` lets GGDP grow a cluster with data, and lowers `core.maximum` again. `zones`
lets two clusters share two zones, with both partitions of idle nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
from typing import TYPE_CHECKING, Final

import structlog

from benchmarks.mrclusters import virtual_time

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Final[Mapping[str, Mapping[str, int | str]]] = {
    "stream": {"seeds": 3, "jobs": 50, "policies": "Static,GSP,GGP,GGDP"},
    "core-nodes": {"core": 4, "added": 4, "blocks": 2000},
    "zones": {"first": 12, "second": 6},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, defaults in COMMANDS.items():
        command = commands.add_parser(name)
        for option, value in defaults.items():
            command.add_argument(f"--{option}", type=type(value), default=value, help=f"(default {value!r})")
    arguments = parser.parse_args()
    virtual_time.install()  # before any module of the operator takes a clock as the default of an argument
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    logging.getLogger("boathouse").setLevel(logging.ERROR)
    module = importlib.import_module("benchmarks.mrclusters." + arguments.command.replace("-", "_"))
    with asyncio.Runner(loop_factory=virtual_time.EventLoop) as runner:
        runner.run(module.main(arguments))


if __name__ == "__main__":
    main()

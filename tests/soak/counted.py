"""Run the operator, and write a census of the process to a pipe at each SIGUSR1.

    python -m tests.soak.counted PIPE [arguments of `python -m boathouse`]

The census is taken in the signal handler, between two instructions of the main thread: nothing changes meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING

from boathouse import main
from tests.builders import census

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = (*census.OWN, "kopf")


def run(pipe: int, arguments: Sequence[str]) -> int:
    """Run the operator; returns its exit code."""
    answers = os.fdopen(pipe, "w")

    def answer(*_: object) -> None:
        answers.write(json.dumps(census.take(PACKAGES)) + "\n")
        answers.flush()

    signal.signal(signal.SIGUSR1, answer)
    return main.main(arguments)


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), sys.argv[2:]))

"""The operator with the profile `boathouse` and without one of its policies, for `live_mix.py`.

    python -m benchmarks.partial_operator PART [arguments of `python -m boathouse`]

PART is one of `POLICIES` of `boathouse_lab.board.parts`.
"""

from __future__ import annotations

import sys
from unittest import mock

from boathouse import main
from boathouse_lab.board.parts import POLICIES as PARTS, build
from boathouse_policies import profiles

__all__ = ["PARTS", "build"]

if __name__ == "__main__":
    left_out = sys.argv.pop(1)
    with mock.patch.object(profiles, "build", return_value=build(left_out)):
        sys.exit(main.main())

"""The soak in short: `make soak` is the long form."""

import subprocess
import sys

import pytest

from boathouse_e2e import paths

SHORT = ("--events=1500", "--objects=48", "--tenants=2", "--growth=0.15")
"""The memory of so young a process still grows; the census is exact in the short form too."""


@pytest.mark.parametrize("sizes", [SHORT, pytest.param((), marks=[pytest.mark.long, pytest.mark.timeout(5400)])])
def test_the_operator_does_not_grow_under_a_steady_load(tmp_path, sizes):
    soak = subprocess.run(
        [sys.executable, "-m", "tests.soak", f"--folder={tmp_path}", *sizes],
        cwd=paths.REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert soak.returncode == 0, soak.stdout + (tmp_path / "operator.log").read_text()[-4000:]
    assert "Growth after the first third" in soak.stdout

"""Groups of tests, on which the targets that share a cluster or a control plane rely."""

import subprocess
import sys

TESTS = """
import os, pathlib, pytest

@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(4))
def test_one(number):
    pathlib.Path(f"worker-{number}").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_the_tests_of_a_group_run_in_one_process(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, "test_some.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert len({path.read_text() for path in tmp_path.glob("worker-*")}) == 1

"""The example in examples/simulation.py runs, and prints what docs/simulator.md says that it does."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


def test_the_example_prints_what_the_page_shows(capsys):
    runpy.run_path(str(ROOT / "examples" / "simulation.py"), run_name="__main__")
    printed = capsys.readouterr().out.strip()
    assert printed in (ROOT / "docs" / "simulator.md").read_text()

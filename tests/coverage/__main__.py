"""Record coverage by test, and run what a change concerns."""

from __future__ import annotations

import argparse
import sys

from tests.coverage import changed, record


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record", help="record what each test executes, if it is new or changed")
    recorder.add_argument("paths", nargs="*", default=record.WITHOUT_CLUSTER, help="default: tests without a cluster")
    recorder.add_argument("--again", action="store_true", help="record tests that have not changed, too")
    recorder.add_argument("-n", dest="workers", default="auto", help="workers (default: auto)")
    changes = commands.add_parser("changed", help="run the tests that a change concerns, the cheapest first")
    changes.add_argument("--base", default="", help="default: where HEAD left origin/main, or main")
    changes.add_argument("--budget", dest="budget_s", type=float, default=300, help="seconds (default: 300)")
    arguments = parser.parse_args()
    if arguments.command == "changed":
        sys.exit(changed.run(arguments.base, arguments.budget_s))
    record.record(arguments.paths, again=arguments.again, workers=arguments.workers)


if __name__ == "__main__":
    sys.exit(main())

"""Start the command line: `boathouse`, `kubectl boathouse` or `python -m boathouse_cli`."""

from __future__ import annotations

import sys

from boathouse_cli.errors import CommandError, ExitCode


def main() -> None:
    """Run a command. An error is one line on stderr and an exit code of `boathouse_cli.errors`."""
    try:
        from boathouse_cli import commands

        commands.app()
    except ModuleNotFoundError as error:
        print(
            f"error: {error.name} is missing: install boathouse[cli], for simulate and record --write "
            "boathouse[cli,simulator]",
            file=sys.stderr,
        )
        sys.exit(ExitCode.USAGE)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.code)
    except BrokenPipeError:
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

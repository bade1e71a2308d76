"""Start the command line: `boathouse`, `kubectl boathouse` or `python -m boathouse_cli`; and complete it for kubectl.

By its protocol for plugins, kubectl calls `kubectl_complete-boathouse` with the words after the plugin's name; the last
is incomplete. It expects a completion in each line, and in the last line a colon with a directive of Cobra.
"""

import os
import shlex
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


def complete() -> None:
    """Print the completions of the words of the command line."""
    from boathouse_cli import commands

    *whole, _ = words = sys.argv[1:] or [""]
    line = " ".join(["boathouse", *map(shlex.quote, whole), words[-1]])
    os.environ |= {"_BOATHOUSE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    try:
        commands.app(prog_name="boathouse")
    except SystemExit:
        # Cobra's directives: 4 is that the shell completes no file names, as it does for commands that read files.
        print(":0" if whole[:1] in (["convert"], ["simulate"], ["submit"]) else ":4")


if __name__ == "__main__":
    main()

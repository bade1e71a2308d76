"""`kubectl_complete-boathouse`: complete `kubectl boathouse` by kubectl's protocol for plugins.

kubectl calls this program with the words after the plugin's name; the last is incomplete. It expects a completion in
each line, and in the last line a colon with a directive of Cobra.
"""

from __future__ import annotations

import os
import shlex
import sys

NO_FILES = ":4"
"""Cobra's directive that the shell completes no file names."""
FILES = ":0"
"""It does: for commands that read files."""


def main() -> None:
    """Print the completions of the words of the command line."""
    from boathouse_cli import commands

    *whole, _ = words = sys.argv[1:] or [""]
    line = " ".join(["boathouse", *map(shlex.quote, whole), words[-1]])
    os.environ |= {"_BOATHOUSE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    try:
        commands.app(prog_name="boathouse")
    except SystemExit:
        print(FILES if whole[:1] in (["convert"], ["simulate"], ["submit"]) else NO_FILES)


if __name__ == "__main__":
    main()

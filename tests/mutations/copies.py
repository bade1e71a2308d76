"""Keep copies of the checkout, so that a fault is never planted in the work tree.

A copy has an interpreter of its own that imports the copy's packages and the libraries of `.venv`. So a process that a
test starts imports from the copy, too, whatever environment the test gives it.
"""

from __future__ import annotations

import filecmp
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import time

from tests.coverage import recording

FOLDERS = ("policies", "operator", "e2e", "lab")
"""Where the packages are: `dev-mode-dirs` of both `pyproject.toml`."""
_mtimes_s = itertools.count(int(time.time()))


class Copy:
    """A copy of the checkout."""

    def __init__(self, folder: pathlib.Path, root: pathlib.Path = recording.ROOT) -> None:
        self.folder, self._root = folder, root
        self.python = folder / ".venv" / "bin" / "python"

    def update(self) -> None:
        """Make the copy equal to the checkout again, whatever a run has left in it."""
        files = _files(self._root)
        for name in files:
            source, target = self._root / name, self.folder / name
            if not target.exists() or not filecmp.cmp(source, target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        kept = set(files)
        for folder in {name.partition("/")[0] for name in files if "/" in name}:
            for path in sorted((self.folder / folder).rglob("*"), reverse=True):
                name = path.relative_to(self.folder).as_posix()
                if path.is_file() and name not in kept and "__pycache__" not in path.parts:
                    path.unlink()
        if not self.python.exists():
            self._make_interpreter()

    def _make_interpreter(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder / ".venv"], check=True)
        libraries = sysconfig.get_path("purelib")
        packages = pathlib.Path(sysconfig.get_path("purelib", vars={"base": str(self.folder / ".venv")}))
        paths = [*(str(self.folder / name) for name in FOLDERS), libraries]
        (packages / "copy.pth").write_text("\n".join(paths) + "\n")
        for script in pathlib.Path(sys.executable).parent.iterdir():
            target = self.python.parent / script.name
            start = f"#!{sys.executable}".encode()
            if script.is_file() and not target.exists() and script.read_bytes()[: len(start)] == start:
                target.write_bytes(script.read_bytes().replace(start, f"#!{self.python}".encode(), 1))
                target.chmod(0o755)

    def plant(self, path: str, text: str) -> None:
        """Change a file. Its time differs from all others, so that no interpreter takes an earlier bytecode for it."""
        target = self.folder / path
        target.write_text(text)
        os.utime(target, (next(_mtimes_s),) * 2)

    def restore(self, path: str) -> None:
        """Undo a change."""
        shutil.copy2(self._root / path, self.folder / path)


def _files(root: pathlib.Path) -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in listed.split("\0") if name and (root / name).is_file())

"""Unpack the job's archives into folders of the command's working folder, like Hadoop's -archives.

Nothing leaves an archive's folder: names that lead out of it, links to the outside, devices and too many bytes are
refused. Links are checked when all are there, because a link may change where an earlier one leads.
"""

import errno
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import IO

from boathouse_task import files
from boathouse_task.contract import ArchiveSource, FileSource, Reason
from boathouse_task.environment import Environment
from boathouse_task.errors import TaskError
from boathouse_task.sorting import out_of_disk
from boathouse_task.storage import Storage

MAX_ENTRIES = 100_000
"""Maximum files, folders and links of an archive."""
_COPY_BYTES = 1024 * 1024
_LONGEST_LINK = 4096
_TAR = (".tar", ".tar.gz", ".tgz")
_ZIP = (".zip", ".jar")
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError)
"""RuntimeError: an encrypted zip, or a method that Python does not have."""


def place(archives: Iterable[ArchiveSource], folder: Path, storage: Storage, environment: Environment) -> None:
    """Unpack archives to folders of their names. Raises TaskError: InvalidArchive, or as `files.place`."""
    for archive in archives:
        packed = environment.work_path / "archive"
        source = FileSource(name=packed.name, url=archive.url)
        files.place([source], environment.work_path, storage, environment.window_bytes)
        try:
            with out_of_disk(packed):
                _Unpacking(archive, folder / archive.name).unpack(packed)
        finally:
            packed.unlink(missing_ok=True)


class _Unpacking:
    def __init__(self, archive: ArchiveSource, target: Path) -> None:
        self._archive, self._target, self._root = archive, target, ""
        self._bytes = self._entries = 0
        self._links: list[Path] = []

    def unpack(self, packed: Path) -> None:
        try:
            self._target.mkdir()
            self._root = os.path.realpath(self._target)
            if self._archive.url.endswith(_TAR):
                self._tar(packed)
            elif self._archive.url.endswith(_ZIP):
                self._zip(packed)
            else:
                raise self._refused(f"has none of the extensions {', '.join((*_ZIP, *_TAR))}")
        except _BROKEN as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise self._refused(f"cannot be read ({error})") from None
        for link in self._links:
            if not self._is_inside(os.path.realpath(link)):
                raise self._refused(f"has the link {link.relative_to(self._target)} to the outside")

    def _tar(self, packed: Path) -> None:
        with tarfile.open(packed, "r:*") as opened:
            for member in opened:
                path = self._path(member.name)
                if member.isdir():
                    path.mkdir(parents=True, exist_ok=True)
                elif member.issym():
                    self._link(path, member.linkname)
                elif member.islnk():
                    shutil.copyfile(self._regular(member.linkname), self._free(path), follow_symlinks=False)
                elif member.isfile():
                    content = opened.extractfile(member)
                    assert content is not None
                    self._write(path, content, is_executable=bool(member.mode & stat.S_IXUSR))
                else:
                    raise self._refused(f"has {member.name}, which is neither a file, a folder nor a link")

    def _zip(self, packed: Path) -> None:
        with zipfile.ZipFile(packed) as opened:
            for entry in opened.infolist():
                path, mode = self._path(entry.filename), entry.external_attr >> 16
                if entry.is_dir():
                    path.mkdir(parents=True, exist_ok=True)
                    continue
                with opened.open(entry) as content:
                    if stat.S_ISLNK(mode):
                        self._link(path, content.read(_LONGEST_LINK).decode())
                    else:
                        self._write(path, content, is_executable=bool(mode & stat.S_IXUSR))

    def _path(self, name: str) -> Path:
        """Return the path of an entry, whose folder is there and inside."""
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise self._refused(f"has more than {MAX_ENTRIES} entries")
        path = self._target / name
        is_outside = name.startswith("/") or ".." in name.split("/")
        if is_outside or (path != self._target and not self._is_inside(os.path.realpath(path.parent))):
            raise self._refused(f"has the name {name[:100]!r}, which leads out of the folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _is_inside(self, path: str) -> bool:
        return f"{path}/".startswith(f"{self._root}/")

    def _free(self, path: Path) -> Path:
        """Return the path without what an earlier entry of the same name left there."""
        if path.is_symlink() or path.is_file():
            path.unlink()
        return path

    def _regular(self, name: str) -> Path:
        """Return the file that a hard link names, and count its copy."""
        path = self._path(name)
        if path.is_symlink() or not path.is_file():
            raise self._refused(f"has a link to {name[:100]!r}, which is not an earlier file of it")
        self._count(path.stat().st_size)
        return path

    def _link(self, path: Path, target: str) -> None:
        self._free(path).symlink_to(target)
        self._links.append(path)

    def _write(self, path: Path, content: IO[bytes], *, is_executable: bool) -> None:
        with self._free(path).open("xb") as file:
            for chunk in iter(partial(content.read, _COPY_BYTES), b""):
                self._count(len(chunk))
                file.write(chunk)
        path.chmod(0o755 if is_executable else 0o644)

    def _count(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        if self._bytes > self._archive.max_bytes:
            raise self._refused(f"unpacks to more than its maxSize of {self._archive.max_bytes} bytes")

    def _refused(self, problem: str) -> TaskError:
        return TaskError(Reason.INVALID_ARCHIVE, f"spec.archives: {self._archive.name} ({self._archive.url}) {problem}")

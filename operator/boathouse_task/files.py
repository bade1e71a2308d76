"""Copy the job's files, executable, to the command's working folder, like Hadoop's -files."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from boathouse_task import contract, errors, locations, processes, sorting
from boathouse_task.storage import Storage


def place(files: Iterable[contract.FileSource], folder: Path, storage: Storage, window_bytes: int) -> None:
    """Copy the files into the folder. Raises TaskError: FileNotFound, InvalidSpec, or the storage's reasons."""
    for file in files:
        if file.name in ("", ".", "..") or "/" in file.name:
            raise errors.TaskError(contract.Reason.INVALID_SPEC, f"spec.files: {file.name!r} is not a plain file name")
        target = folder / file.name
        with sorting.out_of_disk(target):
            _fetch(file, target, storage, window_bytes)
        target.chmod(0o755)


def _fetch(file: contract.FileSource, target: Path, storage: Storage, window_bytes: int) -> None:
    if file.path is not None:
        try:
            shutil.copyfile(file.path, target)
        except FileNotFoundError:
            raise _missing(file, file.path) from None
        return
    if file.url is None:
        raise errors.TaskError(contract.Reason.INVALID_SPEC, f"spec.files: {file.name} has neither a path nor a URL")
    location = locations.parse(file.url)
    size = storage.size(location)
    if size is None:
        raise _missing(file, location.url)
    try:
        with target.open("wb", buffering=0) as opened:
            for window in storage.read_windows(location, 0, size, window_bytes):
                processes.write_all(opened.fileno(), window)
    except errors.NotFound:
        raise _missing(file, location.url) from None


def _missing(file: contract.FileSource, where: str) -> errors.TaskError:
    return errors.TaskError(
        contract.Reason.FILE_NOT_FOUND, f"spec.files: {file.name} does not exist at {where}: check the URL"
    )

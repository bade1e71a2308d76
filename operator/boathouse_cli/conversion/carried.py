"""Files of the user's machine that a submission takes along, in a ConfigMap. Pure, but for the reader it is given."""

from __future__ import annotations

import base64
import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

MOUNT_PATH: Final = "/mnt/submitted"
"""Where driver and executors have the files."""
VOLUME: Final = "submitted"
MAX_BYTES: Final = 900 * 1024
"""Of all files: a ConfigMap holds 1 MiB."""
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class Carried:
    """The files that a submission takes along, by their names.

    Args:
        read: Returns the content of a file.
        suffix: Ends the ConfigMap's name, so that each submission has its own.
    """

    def __init__(self, read: Callable[[str], bytes], suffix: str) -> None:
        self._read = read
        self._suffix = suffix
        self._paths: dict[str, str] = {}
        self.files: dict[str, bytes] = {}

    def add(self, path: str, name: str = "") -> str:
        """Take a file along; return its name in the ConfigMap.

        Args:
            path: On this machine, or a `file:` URI.
            name: In the ConfigMap; the file's own by default.

        Raises:
            CommandError: There is no such file, it is too large, or another one has its name.
        """
        path = re.sub(r"^file:(//)?", "", path)
        name = name or posixpath.basename(path)
        if self._paths.get(name) == path:
            return name
        if name in self._paths:
            raise CommandError(f"{path} and {self._paths[name]} have the same name: rename one", ExitCode.USAGE)
        if _KEY.fullmatch(name) is None:
            raise CommandError(f"{path}: rename it with letters, digits, -, _ and . only", ExitCode.USAGE)
        try:
            content = self._read(path)
        except OSError as error:
            raise CommandError(
                f"{path} cannot be read on this machine ({error.strerror}): correct the path, or write local://PATH "
                "for a file of the image",
                ExitCode.USAGE,
            ) from error
        total = len(content) + sum(map(len, self.files.values()))
        if total > MAX_BYTES:
            raise CommandError(
                f"{path}: local files of {total / 1024:.0f} KiB are too large to be taken along, at most "
                f"{MAX_BYTES // 1024} KiB are: put it into a store and name its URL, such as s3a://BUCKET/{name}, or "
                f"into the image and write local://PATH",
                ExitCode.USAGE,
            )
        self.files[name], self._paths[name] = content, path
        return name

    def config_map_name(self, name: str) -> str:
        """Return the name of the ConfigMap of an object that has this name, or one that begins so."""
        return f"{name}-files-{self._suffix}"

    def manifest(self, name: str) -> dict[str, Any]:
        """Return the ConfigMap."""
        text: dict[str, str] = {}
        binary: dict[str, str] = {}
        for key, content in self.files.items():
            try:
                text[key] = content.decode()
            except UnicodeDecodeError:
                binary[key] = base64.b64encode(content).decode()
        data = {"data": text, "binaryData": binary}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.config_map_name(name)},
            "immutable": True,
            **{field: values for field, values in data.items() if values},
        }

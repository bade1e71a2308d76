"""Where the files of an application are, as a driver in a pod can load them."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from boathouse.resources.sparkapp.program import SCHEMES
from boathouse_cli.conversion.draft import CARRIED_PATH, Unconvertible

if TYPE_CHECKING:
    from boathouse_cli.conversion.draft import Draft

WORK_FOLDER: Final = "/opt/spark/work-dir"
"""Where Spark's images begin."""
_URI: Final = re.compile(rf"(?:{'|'.join(SCHEMES)})://[^, ]+")
_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][-+.A-Za-z0-9]*):(?P<rest>.*)", re.DOTALL)


def is_loadable(uri: str) -> bool:
    """Return whether the API server accepts a URI, apart from `file:` URIs outside of mounts."""
    is_path_absolute = not uri.startswith(("local:", "file:")) or re.match(r"\w+:///[^/]", uri) is not None
    return _URI.fullmatch(uri) is not None and is_path_absolute and uri.isprintable()


def in_pods(draft: Draft, path: str, text: str) -> str:
    """Return a file's URI as pods see it, with a note if it is a file of the machine of `spark-submit`.

    Args:
        draft: Its volumes are known: `file:` is kept below them.
        path: Where the text comes from.
        text: A URI, or a path without a scheme.
    """
    match = _SCHEME.fullmatch(text.strip())
    scheme, rest = (match["scheme"], match["rest"]) if match else ("", text.strip())
    if scheme not in {"", "local", "file"}:
        return text.strip()
    location = "/" + rest.lstrip("/") if scheme or rest.startswith("/") else posixpath.join(WORK_FOLDER, rest)
    location = posixpath.normpath(location) if rest else location
    if scheme == "local":
        return f"local://{location}"
    if any(location.startswith(f"{mount}/") for mount in _mounts(draft)):
        return f"file://{location}"
    if draft.carried is not None:
        name, mark, alias = text.strip().partition("#")
        return f"file://{CARRIED_PATH}/{draft.carried.add(name)}{mark}{alias}"
    draft.note(
        path,
        f"{text.strip()} is a file of the machine of spark-submit, and Boathouse uploads none: put it into the image "
        f"at {location}, as the SparkApp says, or into a store or volume, and correct its URI",
    )
    return f"local://{location}"


def main_file(draft: Draft, path: str, text: str) -> str:
    """Return the URI of the program.

    Raises:
        Unconvertible: A driver cannot load it.
    """
    uri = in_pods(draft, path, text)
    if not is_loadable(uri):
        schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise Unconvertible(path, f"{uri} cannot be loaded by a driver: copy it to one of {schemes}")
    return uri


def _mounts(draft: Draft) -> list[str]:
    shared = draft.get("storage.volume")
    paths = [shared.get("mountPath", "/data")] if shared else []
    return paths + [each["mountPath"] for each in draft.get("volumes") or []]

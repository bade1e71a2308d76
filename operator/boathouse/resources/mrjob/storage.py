"""The rules that an MRJob's URLs agree with its storage."""

from typing import Final

from boathouse.resources.base import rule
from boathouse_task import contract

_OWN_FILES: Final = f"file://{contract.FILES_PATH}/"
IS_OWN: Final = f"startsWith('{_OWN_FILES}')"
"""Whether a URL is that of a file of the job itself, which tasks mount."""
_FILE = "startsWith('file://')"
_ON_VOLUME = "startsWith('file://' + self.storage.volume.mountPath + '/')"
_INPUT = "(has(self.input) ? self.input : [])"
_OUTPUT = "(has(self.output) ? self.output : '')"
_HAS_VOLUME = "(has(self.storage) && has(self.storage.volume))"
volume_rules = (
    rule(
        f"{_HAS_VOLUME} || !({_OUTPUT}.{_FILE} || {_INPUT}.exists(url, url.{_FILE} && !url.{IS_OWN}))",
        "file:/// URLs need spec.storage.volume: set claimName there",
    ),
    rule(
        f"!{_HAS_VOLUME} || !{_OUTPUT}.{_FILE} || {_OUTPUT}.{_ON_VOLUME}",
        "output must lie on the volume: begin it with file:// and spec.storage.volume.mountPath",
    ),
    rule(
        f"!{_HAS_VOLUME} || {_INPUT}.all(url, !url.{_FILE} || url.{IS_OWN} || url.{_ON_VOLUME})",
        "input must lie on the volume: begin it with file:// and spec.storage.volume.mountPath",
    ),
    rule(
        f"{_INPUT}.all(url, !url.{IS_OWN} || (has(self.files) && "
        f"self.files.exists(file, has(file.configMapKeyRef) && url == '{_OWN_FILES}' + file.name)))",
        "an input below file:///files is one of spec.files: write file:///files/NAME, and name its ConfigMap in the "
        "configMapKeyRef of that file",
    ),
)

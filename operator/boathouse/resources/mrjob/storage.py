"""The rules that an MRJob's URLs agree with its storage."""

from boathouse.resources.base import rule

_FILE = "startsWith('file://')"
_ON_VOLUME = "startsWith('file://' + self.storage.volume.mountPath + '/')"
_INPUT = "(has(self.input) ? self.input : [])"
_OUTPUT = "(has(self.output) ? self.output : '')"
_HAS_VOLUME = "(has(self.storage) && has(self.storage.volume))"
volume_rules = (
    rule(
        f"{_HAS_VOLUME} || !({_OUTPUT}.{_FILE} || {_INPUT}.exists(url, url.{_FILE}))",
        "file:/// URLs need spec.storage.volume: set claimName there",
    ),
    rule(
        f"!{_HAS_VOLUME} || !{_OUTPUT}.{_FILE} || {_OUTPUT}.{_ON_VOLUME}",
        "output must lie on the volume: begin it with file:// and spec.storage.volume.mountPath",
    ),
    rule(
        f"!{_HAS_VOLUME} || {_INPUT}.all(url, !url.{_FILE} || url.{_ON_VOLUME})",
        "input must lie on the volume: begin it with file:// and spec.storage.volume.mountPath",
    ),
)

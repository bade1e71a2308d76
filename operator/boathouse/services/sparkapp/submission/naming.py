"""The names of what is created for an attempt. Pure."""

import dataclasses
import re
from typing import Final

from boathouse.services.frame.manifests import derived_name

MAX_PREFIX: Final = 38
"""Of executors' names: Spark adds `-exec-` and a number of up to 10 digits."""
_DRIVER_NAME: Final = re.compile(r"-a(?P<attempt>\d+)-driver$")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttemptNames:
    """The names of an attempt: a second submission of it would meet the objects of the first.

    Attributes:
        application: The name of the SparkApp.
        uid: Its UID.
        attempt: The number of the attempt, from 1; no two attempts of an application have the same.
    """

    application: str
    uid: str
    attempt: int

    @property
    def application_id(self) -> str:
        """Return the ID by which Spark knows the attempt, such as `spark-0123456789abcdef0123456789abcdef-1`."""
        return f"spark-{self.uid.replace('-', '')}-{self.attempt}"

    @property
    def driver_pod(self) -> str:
        """Return the name of the driver's pod."""
        return self._derived("-driver")

    @property
    def config_map(self) -> str:
        """Return the name of the ConfigMap with properties and executor template."""
        return self._derived("-conf")

    @property
    def executor_prefix(self) -> str:
        """Return the prefix of the names of executors."""
        return derived_name(self.application, self.uid, f"a{self.attempt}", limit=MAX_PREFIX)

    @property
    def service(self) -> str:
        """Return the name of the Service of the UI; all attempts have the same."""
        return derived_name(self.application, self.uid, "ui")

    def _derived(self, suffix: str) -> str:
        return derived_name(self.application, self.uid, f"a{self.attempt}{suffix}")


def attempt_of(driver_pod: str) -> int | None:
    """Return the number of the attempt that a driver's pod is named after; None for another name."""
    match = _DRIVER_NAME.search(driver_pod)
    return int(match["attempt"]) if match else None

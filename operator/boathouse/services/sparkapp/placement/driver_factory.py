"""What the scheduler is given of an attempt, and the manifest of its driver's pod. Pure."""

import dataclasses
from typing import Any, ClassVar

from boathouse.cluster import catalogue, wire
from boathouse.services.sparkapp.app import SPARKAPPS, App
from boathouse.services.sparkapp.submission import driver_pod, executor_memory, executor_template
from boathouse.services.sparkapp.submission.naming import AttemptNames
from boathouse_policies import model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DriverFactory:
    """Builds the pod of a driver: the only task of an application that Boathouse creates a pod for."""

    resource: ClassVar[catalogue.Resource[wire.Manifest]] = SPARKAPPS
    control: ClassVar[None] = None
    app: App
    attempt: AttemptNames

    def build(
        self,
        _task: model.TaskId,
        _resources: model.Resources,
        node: model.NodeName | None,
        expected: model.Resources | None = None,
    ) -> dict[str, Any]:
        """Return the manifest of the driver's pod, without the fence's epoch.

        Raises:
            ValueError: The executors cannot have as little memory as was chosen.
        """
        app = self.app if expected is None else executor_memory.resized(self.app, expected.memory_bytes)
        manifest = driver_pod.build(app, self.attempt)
        if node is not None:
            manifest["spec"]["nodeName"] = node
        return manifest

    def build_expected(self, expected: model.Resources | None) -> dict[str, Any]:
        """Return an executor like those of the driver, as far as admission looks at it, owned by the application."""
        app = self.app if expected is None else executor_memory.resized(self.app, expected.memory_bytes)
        return executor_template.build_like_spark(app, self.attempt)

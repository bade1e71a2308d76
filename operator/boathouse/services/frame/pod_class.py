"""Derive a task class from the manifest of the pods that will be created for its tasks. Pure.

So the room that the scheduler finds or reserves is the room that a pod takes, and a field that reaches the pod also
reaches the scheduler.
"""

from collections.abc import Collection
from typing import TypedDict

from boathouse.scheduling.pods import translate
from boathouse.services.frame.manifests import Manifest
from boathouse_policies import model


class PodClass(TypedDict):
    """The part of a task class that follows from the pods."""

    resources: model.Resources
    constraints: model.Constraints
    labels: dict[str, str]


def of(manifest: Manifest, *, own_labels: Collection[str] = ()) -> PodClass:
    """Return what the scheduler must know of pods like this one.

    Args:
        manifest: A pod of the class, without a node. Its limits become requests where it has none.
        own_labels: Labels that the pods of the class do not share.

    Raises:
        ValueError: The manifest holds something that is not a quantity.
    """
    metadata = manifest["metadata"]
    labels = {key: value for key, value in metadata["labels"].items() if key not in own_labels}
    view = translate.manifest_view({**manifest, "metadata": {**metadata, "labels": labels}})
    return {"resources": translate.spec_resources(view), "constraints": translate.constraints(view), "labels": labels}

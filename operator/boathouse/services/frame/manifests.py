"""Build what the manifests of all kinds have in common, and derive a task class from that of a pod. Pure.

All pods satisfy Pod Security `restricted`. The room that the scheduler finds or reserves is the room that a pod takes.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypedDict

import pydantic

from boathouse.cluster import catalogue
from boathouse.resources import names, pod_template as pod_fields
from boathouse.scheduling.pods import translate
from boathouse_policies import model
from boathouse_task import contract

Manifest = dict[str, Any]
MAX_NAME: Final = 63
"""The longest value of a label, name of a pod that is also its host name, and name of a Service."""
_HASH: Final = 8
_TOKEN_SECONDS: Final = 3600
_UNREACHABLE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PROTECTED: Final = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Annotations by which a pod asks autoscalers to leave its node alone while it runs."""
_RESTRICTED: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


class Owner(Protocol):
    """A custom resource that owns objects."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""


def derived_name(name: str, uid: str, suffix: str, *, limit: int = MAX_NAME) -> str:
    """Return `NAME-UID8-SUFFIX`; a name that is too long or has dots is truncated and gets a hash."""
    end = f"-{uid[:8]}-{suffix}"
    label = name.replace(".", "-")
    if len(label) + len(end) > limit or label != name:
        digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH]
        label = f"{label[: limit - len(end) - _HASH - 1].rstrip('-')}-{digest}"
    return label + end


def owner_reference(resource: catalogue.Resource[Any], owner: Owner) -> Manifest:
    """Return the ownerReference with which Kubernetes deletes an object with its owner."""
    return {
        "apiVersion": f"{resource.group}/{resource.version}",
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def labels(app: str, owner: Owner) -> dict[str, str]:
    """Return the labels of all objects that are created for an owner."""
    return {
        names.APP_NAME: app,
        names.APP_INSTANCE: owner.name if len(owner.name) <= MAX_NAME else owner.uid,
        names.APP_PART_OF: "boathouse",
        names.APP_MANAGED_BY: names.MANAGER,
    }


def as_json(part: pydantic.BaseModel | None) -> Manifest:
    """Return a part of a spec as JSON; empty if it is absent."""
    return part.model_dump(by_alias=True, exclude_none=True) if part is not None else {}


def variables(values: Iterable[tuple[str, str]]) -> list[Manifest]:
    """Return environment variables with these values."""
    return [{"name": name, "value": value} for name, value in values]


def field_variables(*paths: tuple[str, str]) -> list[Manifest]:
    """Return environment variables with the values of fields of the pod, for pairs of variable and path."""
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in paths]


def container_security(*, read_only: bool = True) -> Manifest:
    """Return what `restricted` demands of a container, and by default a read-only root file system."""
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {**own, **({"readOnlyRootFilesystem": True} if read_only else {}), **_RESTRICTED}


def endpoint_mounts() -> list[Manifest]:
    """Return the mounts with which a container sends requests to the progress endpoint."""
    return [
        {"name": "token", "mountPath": contract.TOKEN_PATH.rpartition("/")[0], "readOnly": True},
        {"name": "ca", "mountPath": contract.CA_PATH.rpartition("/")[0], "readOnly": True},
    ]


def endpoint_volumes() -> list[Manifest]:
    """Return the volumes of `endpoint_mounts`."""
    token = {"audience": names.TOKEN_AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    return [
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": token}]}},
        {"name": "ca", "configMap": {"name": names.PROGRESS_CA_CONFIG_MAP, "optional": True}},
    ]


def pod(
    metadata: Manifest,
    fields: pod_fields.TemplateFields,
    *,
    user_id: int,
    containers: Sequence[Manifest],
    volumes: Sequence[Manifest],
    tolerations: Iterable[pod_fields.Toleration],
    patience_s: int,
    node_selector: Mapping[str, str],
    image_pull_secrets: Iterable[str] = (),
    account: str | None = None,
    node: str | None = None,
    more: Mapping[str, Any] | None = None,
    is_protected: bool = False,
) -> Manifest:
    """Return a pod with the fields of a spec; those of Boathouse win, `more` over those that all pods have.

    The spec's `envFrom` is for containers and init containers. For `patience_s` the pod stays on a node that does not
    respond, instead of Kubernetes' 300 s. With `is_protected` autoscalers leave its node alone, unless annotations of
    the spec say otherwise: for pods whose end costs more than an idle node.
    """
    template = fields.pod_template or pod_fields.PodTemplate()
    own = template.metadata or pod_fields.Metadata()
    secrets = (*image_pull_secrets, *(secret.name for secret in fields.image_pull_secrets or ()))
    user = dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), user_id)
    patience = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": patience_s}
    spec = {
        "schedulerName": names.SCHEDULER_NAME,
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"runAsNonRoot": True, **user, **_RESTRICTED, **as_json(template.security_context)},
        "containers": list(containers),
        "volumes": list(volumes),
        "tolerations": [*map(as_json, tolerations), *({"key": taint, **patience} for taint in _UNREACHABLE)],
        "nodeSelector": dict(sorted(node_selector.items())),
        "automountServiceAccountToken": False,
        "imagePullSecrets": [{"name": name} for name in dict.fromkeys(secrets)],
        "serviceAccountName": fields.service_account_name if account is None else account,
        "affinity": as_json(template.affinity),
        "priorityClassName": template.priority_class_name,
        "nodeName": node,
        **(more or {}),
    }
    if fields.env_from:
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            container["envFrom"] = [*map(as_json, fields.env_from)]
    protected = _PROTECTED if is_protected else {}
    metadata = {
        **metadata,
        "labels": {**(own.labels or {}), **metadata["labels"]},
        "annotations": {**protected, **(own.annotations or {}), **metadata.get("annotations", {})},
    }
    present = {name: value for name, value in spec.items() if value not in (None, "", [], {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": present}


class PodClass(TypedDict):
    """The part of a task class that follows from the pods."""

    resources: model.Resources
    constraints: model.Constraints
    labels: dict[str, str]


def pod_class(manifest: Manifest, *, own_labels: Collection[str] = ()) -> PodClass:
    """Return what the scheduler must know of pods like this one, without labels that they do not share."""
    metadata = manifest["metadata"]
    labels = {key: value for key, value in metadata["labels"].items() if key not in own_labels}
    view = translate.manifest_view({**manifest, "metadata": {**metadata, "labels": labels}})
    return {"resources": translate.spec_resources(view), "constraints": translate.constraints(view), "labels": labels}

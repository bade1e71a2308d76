"""What a SparkApplication says of its pods, in flat fields or in a template, as fields of a SparkApp."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from boathouse.resources import names
from boathouse_cli.conversion.draft import EXECUTOR, ROLES, Draft
from boathouse_cli.conversion.fields import Fields
from boathouse_cli.conversion.pod_fields import Mount, put_account, put_metadata, put_variables

_RESTRICTED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What the pods of a SparkApp have anyway."""
_IDS: Final = ("runAsUser", "runAsGroup", "fsGroup")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATION: Final = ("key", "operator", "value", "effect", "tolerationSeconds")


class PodSpecs:
    """The pods of driver and executors, as they are converted, with the volumes of the spec; `mounts` is the result."""

    def __init__(self, draft: Draft, volumes: list[Mapping[str, Any]]) -> None:
        self._draft = draft
        self._volumes = volumes
        self._of_both: dict[str, dict[str, tuple[str, Any]]] = {}
        self._security_of: dict[tuple[str, str], dict[str, tuple[str, Any]]] = {}
        self.mounts: list[Mount] = []

    def convert(self, role: str, fields: Fields) -> None:
        """Convert what the other operator sets in a role's pods itself: it wins over the template and properties."""
        self._pod(role, fields, security="podSecurityContext")
        self._container(role, fields)
        gpu = fields.inner("gpu")
        name, quantity = gpu.text("name"), gpu.take("quantity")
        if isinstance(quantity, int) and name is not None:
            self._draft.merge(f"{role}.extendedResources", {name: quantity} if quantity > 0 else {})
        elif name is not None or quantity is not None:
            self._draft.note(
                fields.path("gpu"), "has no name and whole quantity: write both, such as nvidia.com/gpu, 1"
            )
        gpu.note_left(self._draft)

    def finish(self, *, priority_class: str | None) -> None:
        """Set the fields that driver and executors have in common."""
        field, path = "podTemplate.priorityClassName", "spec.batchSchedulerOptions.priorityClassName"
        given = self._of_both.get(field)
        if priority_class and given is None:
            for role in ROLES:
                self._share(field, role, path, priority_class)
        elif priority_class and given and any(value != priority_class for _, value in given.values()):
            self._draft.note(path, "driver and executor say otherwise, and are taken: remove one of them")
        for field, by_role in self._of_both.items():
            path, value = by_role.get(EXECUTOR) or next(iter(by_role.values()))
            self._draft.put(field, value)
            if any(by_role.get(role, ("", None))[1] != value for role in ROLES):
                self._draft.note(path, f"spec.{field} is of driver and executors alike: check that this may be")

    def _share(self, field: str, role: str, path: str, value: Any) -> None:
        if value:
            self._of_both.setdefault(field, {})[role] = (path, value)

    def _withdraw(self, field: str, role: str) -> None:
        """Forget what the template of a role says: it is replaced."""
        by_role = self._of_both.get(field, {})
        by_role.pop(role, None)
        if not by_role:
            self._of_both.pop(field, None)

    def convert_template(self, role: str, template: Fields) -> None:
        """Convert a role's template, over which properties and fields win."""
        metadata = template.inner("metadata")
        for what in ("labels", "annotations"):
            put_metadata(self._draft, role, metadata.path(what), what, metadata.texts(what))
        spec = template.inner("spec")
        containers = spec.mappings("containers")
        main = _named(f"spark-kubernetes-{role}", containers) or (containers[0] if containers else {})
        if len(containers) > 1:
            self._draft.note(spec.path("containers"), "only Spark's container is run: the others have no counterpart")
        container = Fields({**main, "name": None}, spec.path("containers[0]"))
        self._volumes = [*self._volumes, *spec.mappings("volumes")]
        self._pod(role, spec, security="securityContext")
        if (account := spec.text("serviceAccountName")) is not None:
            put_account(self._draft, spec.path("serviceAccountName"), account, role=role)
        self._draft.extend("imagePullSecrets", [dict(secret) for secret in spec.mappings("imagePullSecrets")])
        self._resources(role, container.inner("resources"))
        self._container(role, container)
        for fields in (metadata, template, spec, container):
            fields.note_left(self._draft)

    def _container(self, role: str, fields: Fields) -> None:
        put_variables(self._draft, role, fields.path("env"), fields.mappings("env"))
        if sources := fields.mappings("envFrom"):
            _, shared = self._of_both.get("envFrom", {}).get(role, ("", ()))
            of_template = [source for source in shared if source not in sources]
            self._share("envFrom", role, fields.path("envFrom"), [*of_template, *sources])
        self._security(role, "container", fields.inner("securityContext"))
        for given in fields.mappings("volumeMounts"):
            name = str(given.get("name"))
            mount = Fields({**given, "name": None}, f"{fields.path('volumeMounts')}.{name}")
            self.mounts.append(
                Mount(
                    role=role,
                    path=f"{fields.path('volumeMounts')}.{name}",
                    name=name,
                    mount_path=(mount.text("mountPath") or "").rstrip("/"),
                    source={kind: part for kind, part in _named(name, self._volumes).items() if kind != "name"},
                    sub_path=mount.text("subPath") or mount.text("subPathExpr") or "",
                    is_read_only=bool(mount.take("readOnly")),
                )
            )
            mount.note_left(self._draft)
        for config_map in fields.mappings("configMaps"):
            name, mount_path = str(config_map.get("name")), str(config_map.get("path")).rstrip("/")
            path, source = f"{fields.path('configMaps')}.{name}", {"configMap": {"name": config_map.get("name")}}
            self.mounts.append(Mount(role=role, path=path, name=name, mount_path=mount_path, source=source))

    def _pod(self, role: str, fields: Fields, *, security: str) -> None:
        draft = self._draft
        draft.merge(f"{role}.nodeSelector", fields.texts("nodeSelector"))
        tolerations = [
            {key: value for key, value in toleration.items() if key in _TOLERATION and value is not None}
            for toleration in fields.mappings("tolerations")
        ]
        draft.extend(f"{role}.tolerations", tolerations)
        self._affinity(role, fields.inner("affinity"))
        self._security(role, "pod", fields.inner(security))
        self._share(
            "podTemplate.priorityClassName", role, fields.path("priorityClassName"), fields.text("priorityClassName")
        )
        if (scheduler := fields.text("schedulerName")) not in {None, names.SCHEDULER_NAME}:
            draft.note(fields.path("schedulerName"), f"{scheduler}: Boathouse schedules its own pods: remove it")

    def _affinity(self, role: str, affinity: Fields) -> None:
        if affinity.names():  # it replaces that of the template
            self._withdraw("podTemplate.affinity", role)
        node = affinity.inner("nodeAffinity")
        required = node.inner(_REQUIRED)
        path = required.path("nodeSelectorTerms")
        terms = []
        for term in required.mappings("nodeSelectorTerms"):
            if term.get("matchExpressions"):
                terms.append({"matchExpressions": term["matchExpressions"]})
            for field in sorted(key for key, value in term.items() if value and key != "matchExpressions"):
                self._draft.note(
                    f"{path}.{field}", "has no counterpart: use matchExpressions on kubernetes.io/hostname"
                )
        if terms:
            value = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}
            self._share("podTemplate.affinity", role, affinity.path("nodeAffinity"), value)
        for fields in (affinity, node, required):
            for _, path in fields.left():
                self._draft.note(
                    path, "only required node affinity is converted: see podTemplate.affinity for other pods"
                )

    def _security(self, role: str, level: str, context: Fields) -> None:
        """Convert the context of a pod or of its container, which wins; each replaces that of the template."""
        is_given = bool(context.names())
        found: dict[str, Any] = {key: value for key in _IDS if (value := context.take(key)) is not None}
        groups = context.items("supplementalGroups")
        for key in [key for key, value in found.items() if not value]:
            self._draft.note(context.path(key), "pods of a SparkApp do not run as root: remove it")
            del found[key]
        found |= {"supplementalGroups": groups} if groups else {}
        if is_given:
            self._security_of[role, level] = {key: (context.path(key), value) for key, value in found.items()}
            both = self._security_of.get((role, "pod"), {}) | self._security_of.get((role, "container"), {})
            self._withdraw("podTemplate.securityContext", role)
            if both:
                path = next(path for path, _ in both.values())
                self._share("podTemplate.securityContext", role, path, {key: value for key, (_, value) in both.items()})
        for key, value in _RESTRICTED.items():
            given = context.take(key)
            if given is not None and given != value:
                self._draft.note(context.path(key), "pods of a SparkApp keep to Pod Security restricted: remove it")
        context.note_left(self._draft)

    def _resources(self, role: str, resources: Fields) -> None:
        """Convert what Spark does not compute: it ignores CPU and memory of a template."""
        for part in ("limits", "requests"):
            for name, amount in resources.texts(part).items():
                if name == "ephemeral-storage":
                    self._draft.put(f"{role}.ephemeralStorage", amount)
                elif "/" in name:
                    self._draft.merge(f"{role}.extendedResources", {name: amount})
        resources.note_left(self._draft)


def _named(name: str, candidates: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((candidate for candidate in candidates if candidate.get("name") == name), {})

"""Fields of an MRJob for its task pods, limited to what Pod Security `restricted` permits."""

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.config import JsonDict

from boathouse.resources import base
from boathouse.resources.base import ATOMIC, DnsLabel, Model, ObjectName, checked, holds, optional, rule, rules

_PREFIX = "([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?"
_KEY = f"^{_PREFIX}[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
_OURS = "{what} that begin with boathouse.dev/ or app.kubernetes.io/ belong to Boathouse: choose other names"
_NOT_OURS = "self.all(key, !key.startsWith('boathouse.dev/') && !key.startsWith('app.kubernetes.io/'))"
MAX_ANNOTATION_BYTES = MAX_AFFINITY_BYTES = 64 * 1024
_UserId = Annotated[int, Field(ge=1, le=2**31 - 1)]
_ANNOTATIONS = base.at_most_bytes("self.map(key, bytes(self[key]))", MAX_ANNOTATION_BYTES, "annotations")


def _keys(what: str, *more: dict[str, str]) -> JsonDict:
    return rules(
        *more,
        rule(_NOT_OURS, _OURS.format(what=what)),
        rule(f"self.all(key, key.matches('{_KEY}'))", f"{what} must be [PREFIX/]NAME as in Kubernetes"),
    )


def _listed(most: int, description: str, extra: JsonDict = ATOMIC) -> Any:
    return optional(description, max_length=most, json_schema_extra=extra)


class LocalObject(Model):
    """An object in the job's namespace."""

    name: ObjectName = Field(description="Name of the object.")


class Source(Model):
    """All keys of a ConfigMap or a Secret."""

    name: ObjectName = Field(description="Name of the ConfigMap or Secret.")
    optional: bool | None = optional("Whether pods start if it does not exist. Absent: false, they do not.")


class EnvFrom(Model):
    """All keys of a ConfigMap or a Secret as environment variables."""

    model_config = checked(
        rule("has(self.configMapRef) != has(self.secretRef)", "envFrom: set exactly one of configMapRef and secretRef"),
        rule(
            "!has(self.prefix) || !self.prefix.startsWith('BOATHOUSE_')",
            "envFrom: a prefix that begins with BOATHOUSE_ belongs to the task runtime; choose another",
        ),
    )
    prefix: str | None = optional(
        "Put before each key to make the name of the variable. Absent: nothing.",
        max_length=128,
        pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$",
    )
    config_map_ref: Source | None = optional("A ConfigMap in the object's namespace.")
    secret_ref: Source | None = optional("A Secret in the object's namespace.")


_Label = Annotated[str, Field(max_length=63, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")]
_Labels = Annotated[dict[str, _Label], Field(max_length=32, json_schema_extra=_keys("labels"))]
_Annotation = Annotated[str, Field(max_length=4096)]
_Annotations = Annotated[
    dict[str, _Annotation], Field(max_length=32, json_schema_extra=_keys("annotations", _ANNOTATIONS))
]


class Metadata(Model):
    """Labels and annotations of task pods."""

    labels: _Labels | None = optional("Labels of the pods, beside those of Boathouse.")
    annotations: _Annotations | None = optional("Annotations of the pods, beside those of Boathouse.")


class NodeRequirement(Model):
    """A requirement on a node's label."""

    model_config = checked(
        rule(
            "self.operator in ['Exists', 'DoesNotExist'] ? (!has(self.values) || self.values.size() == 0) : "
            "self.operator in ['Gt', 'Lt'] ? (has(self.values) && self.values.size() == 1 && "
            "self.values[0].matches('^-?[0-9]+$')) : (has(self.values) && self.values.size() > 0)",
            "In and NotIn need values, Gt and Lt one whole number, Exists and DoesNotExist none",
        )
    )
    key: str = Field(min_length=1, max_length=317, description="Key of the label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = Field(
        description="How the label's value compares to values."
    )
    values: list[Annotated[str, Field(max_length=63)]] | None = _listed(
        64, "For In and NotIn one or more, for Gt and Lt one whole number, otherwise none."
    )


class NodeSelectorTerm(Model):
    """Requirements that a node must all meet."""

    match_expressions: list[NodeRequirement] = Field(
        min_length=1,
        max_length=16,
        description="Requirements on labels, all of which must hold.",
        json_schema_extra=ATOMIC,
    )


_AFFINITY = rule(
    "self.map(term, term.matchExpressions.map(one, bytes(one.key).size() + "
    "(has(one.values) ? one.values.map(value, bytes(value).size() + 1).sum() : 0)).sum()).sum() "
    f"<= {MAX_AFFINITY_BYTES}",
    f"keys and values may have {MAX_AFFINITY_BYTES} bytes in total: give the nodes a common label",
)


class NodeSelector(Model):
    """Terms of which a node must match one."""

    node_selector_terms: list[NodeSelectorTerm] = Field(
        min_length=1,
        max_length=16,
        description="Terms, of which one must hold.",
        json_schema_extra={**ATOMIC, **rules(_AFFINITY)},
    )


class NodeAffinity(Model):
    """Required labels of nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector


class LabelRequirement(Model):
    """A requirement on a label of pods or namespaces."""

    model_config = checked(
        rule(
            "self.operator in ['Exists', 'DoesNotExist'] ? (!has(self.values) || self.values.size() == 0) : "
            "(has(self.values) && self.values.size() > 0)",
            "In and NotIn need values, Exists and DoesNotExist none",
        )
    )
    key: str = Field(min_length=1, max_length=317, description="Key of the label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="How the label's value compares to values."
    )
    values: list[Annotated[str, Field(max_length=63)]] | None = _listed(
        16, "For In and NotIn one or more, otherwise none."
    )


_LabelValue = Annotated[str, Field(max_length=63)]
_MatchLabels = Annotated[dict[str, _LabelValue], Field(max_length=8, json_schema_extra=rules(base.SHORT_KEYS))]


class LabelSelector(Model):
    """Selects by labels; an empty selector selects everything."""

    match_labels: _MatchLabels | None = optional("Labels with their values, all of which must match.")
    match_expressions: list[LabelRequirement] | None = _listed(8, "Requirements on labels, all of which must hold.")


_LabelKeys = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=317)]],
    Field(
        max_length=8,
        json_schema_extra={
            **ATOMIC,
            **holds(
                "!self.exists(key, key in ['boathouse.dev/task-index', 'boathouse.dev/attempt', 'boathouse.dev/host'])",
                "each pod has a boathouse.dev/task-index, boathouse.dev/attempt or boathouse.dev/host of its own: "
                "use other labels",
            ),
        },
    ),
]


class PodAffinityTerm(Model):
    """Other pods, and the label by which nodes are near one another."""

    model_config = checked(
        rule(
            "has(self.labelSelector) || !(has(self.matchLabelKeys) || has(self.mismatchLabelKeys))",
            "matchLabelKeys and mismatchLabelKeys need a labelSelector, which may be empty",
        )
    )
    topology_key: str = Field(
        min_length=1,
        max_length=317,
        description="Label of nodes: nodes with the same value are one domain, such as topology.kubernetes.io/zone.",
    )
    label_selector: LabelSelector | None = optional("The pods. Absent: none.")
    namespaces: list[DnsLabel] | None = _listed(
        16, "Namespaces of the pods. Absent, without namespaceSelector: that of the object."
    )
    namespace_selector: LabelSelector | None = optional(
        "Further namespaces. Absent: none; without namespaces, that of the job."
    )
    match_label_keys: _LabelKeys | None = optional("Labels in which the pods have the values of the task's pod.")
    mismatch_label_keys: _LabelKeys | None = optional("Labels in which the pods have other values than the task's pod.")


class PodAffinity(Model):
    """Required terms, all of which must hold."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = Field(
        min_length=1,
        max_length=8,
        description="Terms, all of which must hold when the pod is scheduled.",
        json_schema_extra=ATOMIC,
    )


class Affinity(Model):
    """Required affinity to nodes, and to other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = optional("Pods that must run in the node's domain.")
    pod_anti_affinity: PodAffinity | None = optional("Pods that must not run in the node's domain.")


class SecurityContext(Model):
    """User and groups of the commands. The other settings that `restricted` requires are fixed."""

    run_as_user: _UserId | None = optional("User ID of the containers. Absent: 10001; for SparkApps 185.")
    run_as_group: _UserId | None = optional("Group ID of the containers. Absent: 10001; for SparkApps 185.")
    fs_group: _UserId | None = optional("Group ID of the files of volumes. Absent: 10001; for SparkApps 185.")
    supplemental_groups: list[_UserId] | None = optional(
        "Further group IDs of the containers.", max_length=16, json_schema_extra=ATOMIC
    )


class PodTemplate(Model):
    """Fields of task pods, mutable while the job is suspended."""

    metadata: Metadata | None = None
    affinity: Affinity | None = None
    priority_class_name: ObjectName | None = optional(
        "PriorityClass of the pods. Jobs of higher priority run first within their namespace's share."
    )
    security_context: SecurityContext | None = None


class TemplateFields(Model):
    """Fields of a spec for its task pods."""

    image_pull_secrets: list[LocalObject] | None = _listed(
        16, "Secrets for pulling the image, in addition to those of the chart.", base.map_list("name")
    )
    service_account_name: DnsLabel | None = optional(
        "Service account, for workload identity. Its API token is not mounted. The job's author must have "
        "the right to create pods. Absent: default."
    )
    env_from: list[EnvFrom] | None = _listed(
        16, "ConfigMaps and Secrets whose keys become variables. A variable of env wins over them."
    )
    pod_template: PodTemplate | None = None


class Toleration(Model):
    """A Kubernetes toleration."""

    key: str | None = optional("Key of the tolerated taints. Absent, with Exists: every taint.", max_length=316)
    operator: Literal["Equal", "Exists"] = Field(
        default="Equal", description="Equal: taints with this value. Exists: taints with any value."
    )
    value: str | None = optional("Value of the tolerated taints, for Equal.", max_length=63)
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = optional(
        "Effect of the tolerated taints. Absent: every effect."
    )
    toleration_seconds: int | None = optional(
        "Seconds that a running pod tolerates a NoExecute taint. Absent: without limit.", ge=0
    )


NodeLabels = Annotated[
    dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=32, json_schema_extra=rules(base.SHORT_KEYS))
]
"""A node selector."""
Tolerations = Annotated[list[Toleration], Field(max_length=32, json_schema_extra=ATOMIC)]

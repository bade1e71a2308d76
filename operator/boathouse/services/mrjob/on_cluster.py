"""The part of a job's spec that is for its Hadoop cluster, and what a job on one cannot have. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.resources.base import is_hadoop_setting
from boathouse.resources.mrcluster import spec
from boathouse.resources.mrjob.spec import MRJobSpec

TAGS: Final = "mapreduce.job.tags"
"""The setting with the tag of the attempt, by which the applications of a job are found."""
_OPEN: Final = re.compile(r"dfs\.(replication|blocksize|block\.size|nameservices|ha\.namenodes\..+)")
"""Settings that are closed for a cluster, and that a job may have: those of the files that it writes, and other HDFS
that it reaches. Those of the HDFS of MRClusters win over them."""


def open_settings(spec: MRJobSpec) -> dict[str, str]:
    """Return the user's settings without those that Boathouse sets for the cluster."""
    return {key: value for key, value in _given(spec).items() if not _is_closed(key)}


def closed_keys(spec: MRJobSpec) -> Sequence[str]:
    """Return the user's settings that are ignored, sorted."""
    return sorted(filter(_is_closed, _given(spec)))


def _given(spec: MRJobSpec) -> Mapping[str, str]:
    return {**((spec.hadoop and spec.hadoop.settings) or {}), **(spec.conf or {})}


def _is_closed(key: str) -> bool:
    return spec.is_closed(key) and not _OPEN.fullmatch(key)


def secret_variables(spec: MRJobSpec) -> list[str]:
    """Return the variables whose values come from Secrets."""
    env = spec.env or ()
    return [variable.name for variable in env if variable.value_from and variable.value_from.secret_key_ref]


def problem(spec: MRJobSpec) -> str:
    """Return why a job cannot run on a cluster, or an empty text."""
    if spec.jar is not None:  # without our tag its applications would not be found
        tagged = any(word.removeprefix("-D").startswith(f"{TAGS}=") for word in spec.jar.arguments or ())
        why = f"spec.jar.arguments set {TAGS}, by which Boathouse finds the applications of the job: remove it"
        return why if tagged else ""
    if (secrets := secret_variables(spec)) or spec.env_from:
        what = f"variable {secrets[0]} comes from a Secret" if secrets else "spec.envFrom is set"
        return f"{what}: the tasks of a job with clusterRef get variables with a value or of a ConfigMap's key only"
    step = spec.steps[0] if spec.steps else spec
    separators = [
        spec.map_input_field_separator,
        spec.key_value_separator,
        spec.output_separator,
        spec.record_delimiter,
    ]
    separators += [step.map_output_field_separator, step.map_output_key_field_separator]
    separators += [step.reduce_input_field_separator, step.reduce_output_field_separator]
    if any(char < " " and char != "\t" for separator in separators for char in separator or ""):
        return "a separator has a control character, which Hadoop cannot write to its settings: choose another one"
    wrong = next((key for key, value in (spec.conf or {}).items() if not is_hadoop_setting(key, value)), None)
    if wrong is not None:
        return (
            f'spec.conf: "{wrong}" is no setting of Hadoop: with clusterRef its name has letters, digits, dots, dashes '
            "and underscores, and its value no control characters"
        )
    listed = next((url for url in spec.input if "," in url), None)
    if listed is not None:
        return f'spec.input: "{listed}" has a comma, which separates paths in Hadoop: rename it, or name its folder'
    return ""

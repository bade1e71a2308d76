"""Applications made up by chance become what Kubeflow's operator makes of them, or a note says what differs."""

import collections
import functools
import re
from typing import NamedTuple

import pytest

from boathouse_cli.conversion import manifests
from boathouse_cli.conversion.draft import Note
from tests.kubeflow import applications, facts

LEAST_EQUAL = 7000
_IN = r"(\.template\.spec(\.containers\[0\])?)?"
_CONF = r'spec\.sparkConf\["\S+"\]'
_PATH = r"(/[^/:]+)*/(?P<word>[^/:]+)"
_NONE = (
    "dnsConfig|hostAliases|hostNetwork|initContainers|lifecycle|ports|sidecars|shareProcessNamespace"
    "|terminationGracePeriodSeconds"
)
_ALIKE = ".*: spec.podTemplate.* is of driver and executors alike.*"
NOTED = {
    rf"ROLE\.(?P<word>{_NONE}): .*": rf"spec\.ROLE{_IN}\.WORD: .*",
    r"ROLE\.schedulerName: .*": rf"spec\.(batchScheduler|ROLE{_IN}\.schedulerName): .*",
    r"ROLE\.affinity\.(?P<word>\w+(\.preferred\w+)?).*": rf"spec\.ROLE{_IN}\.affinity\.WORD: .*",
    r"ROLE\.security\.(?P<word>\w+): .*": rf"spec\.ROLE{_IN}\.(podS|s)ecurityContext\.WORD: .*",
    rf"ROLE\.mount\.{_PATH}: .*": (
        rf"(spec\.ROLE{_IN}\.(volumeMounts|configMaps|secrets)\.\S+|{_CONF}): .*\bWORD\b.*"
        rf"|spec\.ROLE{_IN}\.(volumeMounts|configMaps|secrets)\.WORD: .*"
    ),
    rf"ROLE\.mount\.{_PATH}: None -> .*": r"volume WORD: .* mounts it in all pods.*",
    r"ROLE\.(mount\./(etc|mnt)/spark.conf|env\.SPARK_CONF_DIR): .*": r"spec\.sparkConfigMap: .*",
    r"ROLE\.env\.(?P<word>\w+): .*": rf"spec\.ROLE{_IN}\.env: WORD: (?!is given twice).*",
    r"ROLE\.limit\.of memory: .*": r"spec\.ROLE\.memoryLimit: .*",
    r"ROLE\.serviceAccountName: .*": (
        rf"spec\.driver{_IN}\.serviceAccount(Name)?: .*executors have spec\.serviceAccountName.*"
    ),
    r"ROLE\.image: .*": r"spark\.kubernetes\.container\.image: .*",
    r"proxyUser: .*": r"spec\.proxyUser: .*",
    r"conf\.spark\.kubernetes\.driver\.service\.(label|annotation).*": r"spec\.driver\.service(Labels|Annotations): .*",
    r"conf\.spark\.kubernetes\.driver\.master: .*": r"spec\.driver\.kubernetesMaster: .*",
}
"""Differences, with the note that must then say so."""
SHARED = {
    r"\w+\.affinity\..*": f"spec.*affinity{_ALIKE}",
    r"\w+\.priorityClassName": f"spec.*priorityClassName{_ALIKE}",
    r"\w+\.envFrom\..*": "spec.*envFrom: spec.envFrom is of driver and executors alike.*",
    r"\w+\.security\..*": f"spec.*ecurityContext{_ALIKE}",
}
"""Facts that driver and executors of a SparkApp have in common, with the note that must say that one counts."""
STATED = {
    r"driver\.serviceAccountName: default -> boathouse-spark": "the account that drivers may have",
    r"ROLE\.env\.HADOOP_CONF_DIR: .*/etc/hadoop/conf.* -> .*/mnt/hadoop-conf.*": "/etc is taken",
    r"ROLE\.mount\./(etc/hadoop/conf: .* -> None|mnt/hadoop-conf: None -> .*)": "the variable says where",
    r"conf\.spark\.kubernetes\.pyspark\.pythonVersion: 3 -> None": "Spark 4 has no other Python",
    r"conf\.spark\.(storage\.)?decommission\.enabled: None -> true": "executors move their blocks before they go",
    r"conf\.spark\.eventLog\.rolling\.enabled: None -> true": "the log of a long application is in parts",
    r"ROLE\.priorityClassName: None -> batch": "that of a PodGroup there, which says when both roles are scheduled",
    r"conf\.\S+\.shuffleTracking\.enabled: None -> true": "its default, without an external shuffle service",
    r"conf\.\S+\.shuffleTracking\.timeout: 1500 -> 2000": "the field has whole seconds, rounded up",
    r"ROLE\.imagePullSecret\.template: None -> True": "a SparkApp has one list, which is harmless",
}
"""Differences without a note, and why that is right."""


class Difference(NamedTuple):
    """A fact that is not the same.

    Attributes:
        others: What it is in the other role there, and here without any option.
    """

    number: int
    key: str
    theirs: object
    ours: object
    others: tuple[object, object]
    notes: tuple[Note, ...]

    def __str__(self):
        return f"{self.key}: {self.theirs} -> {self.ours}"


class Compared(NamedTuple):
    equal: int
    differences: list[Difference]
    refused: list[tuple[Note, ...]]


@functools.cache
def compared():
    """Compare each application; a fact that every submission of Boathouse has counts only if the other has it."""
    equal, differences, refused = 0, [], []
    for number, application in enumerate(applications.manifests()):
        found = manifests.convert(application)
        if found.manifest is None:
            refused.append(found.notes)
            continue
        theirs, ours = facts.of_kubeflow(application), facts.of_boathouse(found.manifest)
        plain = without_options(application["spec"]["type"])
        for key in sorted(theirs.keys() | {key for key in ours if ours[key] != plain.get(key)}):
            if theirs.get(key) == ours.get(key):
                equal += 1
            else:
                others = theirs.get(in_other_role(key)), plain.get(key)
                differences.append(Difference(number, key, theirs.get(key), ours.get(key), others, found.notes))
    return Compared(equal, differences, refused)


@functools.cache
def without_options(program):
    application = next(manifest for manifest in applications.manifests() if manifest["spec"]["type"] == program)
    return facts.of_boathouse(manifests.convert(applications.plain(application)).manifest)


def in_other_role(key):
    role, _, rest = key.partition(".")
    return f"{'executor' if role == 'driver' else 'driver'}.{rest}"


def is_noted(difference, fact):
    role = difference.key.split(".", 1)[0]
    match = re.fullmatch(fact.replace("ROLE", role), str(difference), re.DOTALL)
    if match is None:
        return False
    note = NOTED[fact].replace("ROLE", role).replace("WORD", re.escape(match.groupdict().get("word", "")))
    return has_note(difference, note)


def is_shared(difference, fact):
    if re.fullmatch(fact, difference.key, re.DOTALL) is None or not has_note(difference, SHARED[fact]):
        return False
    in_other = difference._replace(key=in_other_role(difference.key), theirs=difference.others[0])
    return difference.ours in difference.others or any(is_noted(in_other, pattern) for pattern in NOTED)


def is_stated(difference, fact):
    return re.fullmatch(fact.replace("ROLE", "(driver|executor)"), str(difference), re.DOTALL) is not None


def has_note(difference, text):
    return any(re.fullmatch(text, f"{note.path}: {note.advice}", re.DOTALL) for note in difference.notes)


ROWS = [*((is_noted, fact) for fact in NOTED), *((is_shared, fact) for fact in SHARED)]
ROWS += [(is_stated, fact) for fact in STATED]


def test_every_fact_is_that_of_kubeflows_operator_or_a_note_says_what_differs():
    found = compared()
    silent = [
        difference for difference in found.differences if not any(covers(difference, fact) for covers, fact in ROWS)
    ]
    kinds = collections.Counter(str(difference)[:200] for difference in silent)
    assert kinds == {}, f"first of application {silent[0].number}"
    assert found.equal > LEAST_EQUAL


@pytest.mark.parametrize(("covers", "fact"), ROWS, ids=[fact for _, fact in ROWS])
def test_what_differs_is_still_different(covers, fact):
    assert any(covers(difference, fact) for difference in compared().differences)


def test_every_application_that_runs_there_is_converted():
    assert compared().refused == []

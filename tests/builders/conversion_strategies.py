"""Hypothesis strategies of what `boathouse convert` reads: valid command lines and manifests, and anything else."""

import re
import string

from hypothesis import strategies as st

from boathouse.resources.sparkapp.fields import FIELDS
from boathouse_cli.conversion import manifests
from tests.spark import keys

KEYS = sorted(key for key in keys.read() if key.startswith(keys.PREFIX_OF_KUBERNETES))
WORDS = st.text(string.ascii_letters + string.digits + "-_./:,= $'\"\\é", max_size=20)
NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
NUMBERS = st.integers(1, 40).map(str)
SIZES = st.builds("{}{}".format, st.integers(450, 9000), st.sampled_from(["m", "M", "mb", ""]))
AMOUNTS = st.sampled_from(["1", "500m", "0.5", "2", "1500m"])
FILES = st.builds("{}/{}.{}".format, st.sampled_from(["local:///opt", "s3a://b", "hdfs://n/x", "/home", "."]), NAMES,
                  st.sampled_from(["jar", "py", "zip", "csv"]))  # fmt: skip
TEXTS = {
    r".*[.](cores|instances|minExecutors|maxExecutors|initialExecutors)$": NUMBERS,
    r".*[.](request|limit)[.]cores$": AMOUNTS,
    r".*([mM]emory|[mM]emoryOverhead|offHeap[.]size)$": SIZES,
    r".*memoryOverheadFactor$": st.sampled_from(["0.1", "0.25", "2"]),
    r".*enabled$": st.sampled_from(["true", "false"]),
    r".*extraJavaOptions$": st.sampled_from(["-XX:+UseG1GC", "-Da=b -Dc='d e'"]),
    r".*timeout$": st.sampled_from(["60s", "1500ms", "10min", "5"]),
    r"spark[.](jars|files|archives|submit[.]pyFiles)$": st.lists(FILES, min_size=1, max_size=3).map(",".join),
    r".*(packages|excludes|repositories)$": st.sampled_from(["g:a:1.0", "g:a", "https://repository.example.com/maven"]),
    r"spark[.]eventLog[.]dir$": st.sampled_from(["s3a://logs/spark", "gs://logs", "/logs"]),
}
"""Values that Spark would take, by the key."""


@st.composite
def properties(draw):
    """A property with a value that Spark takes, or any text."""
    key = draw(st.sampled_from([*FIELDS.values(), *KEYS, "spark.sql.shuffle.partitions", "spark.app.name"]))
    if key.endswith("."):
        key += draw(NAMES)
    pattern = next((pattern for pattern in TEXTS if re.match(pattern, key)), None)
    return key, draw(TEXTS[pattern] if pattern else NAMES)


@st.composite
def command_lines(draw):
    """The words of a submission."""
    words = ["spark-submit", "--class", "org.example.Main"]
    for key, value in draw(st.lists(properties(), max_size=12)):
        words += ["--conf", f"{key}={value}"]
    file = draw(FILES.filter(lambda file: file.endswith((".py", ".jar"))))
    return [*words, file, *draw(st.lists(WORDS, max_size=3))]


FIELD_NAMES = sorted(
    {name for part in manifests._PROPERTIES.values() for name in part}
    | {
        "driver",
        "executor",
        "template",
        "metadata",
        "spec",
        "containers",
        "volumes",
        "volumeMounts",
        "env",
        "name",
        "envFrom",
        "valueFrom",
        "key",
        "path",
        "secretKeyRef",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
        "matchExpressions",
        "tolerations",
        "securityContext",
        "supplementalGroups",
        "runAsUser",
        "restartPolicy",
        "type",
        "onFailureRetries",
        "sparkConf",
        "hadoopConf",
        "monitoring",
        "prometheus",
        "gpu",
        "labels",
        "nodeSelector",
        "dynamicAllocation",
        "deps",
        "configMaps",
        "secrets",
        "emptyDir",
        "mountPath",
        "resources",
        "requests",
        "schedule",
        "mainApplicationFile",
        "mainClass",
        "envSecretKeyRefs",
        "queue",
        "batchSchedulerOptions",
        "hadoopConfigMap",
        "sparkConfigMap",
        "imagePullSecrets",
    }
)
WRONG = st.sampled_from(["Python", "/data", "a.py", "1g"])
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5000), WORDS, WRONG),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELD_NAMES), inner, max_size=6)
    ),
    max_leaves=30,
)
SPECS = st.dictionaries(st.sampled_from(FIELD_NAMES), ANYTHING, max_size=10)

"""The names of MRJob: its kind, and the labels and annotations of its pods and ConfigMaps."""

from boathouse.resources.names import GROUP

KIND = "MRJob"
PLURAL = "mrjobs"

LABEL_STEP = f"{GROUP}/step"
LABEL_TASK_TYPE = f"{GROUP}/task-type"
LABEL_TASK_INDEX = f"{GROUP}/task-index"
LABEL_ATTEMPT = f"{GROUP}/attempt"
ANNOTATION_SETTINGS = f"{GROUP}/settings"
"""On a client of a Hadoop cluster: the ConfigMap with the cluster's settings."""
POD_LABELS = frozenset({LABEL_STEP, LABEL_TASK_TYPE, LABEL_TASK_INDEX, LABEL_ATTEMPT, ANNOTATION_SETTINGS})
"""Annotations of pods that the operator reads for MRJobs; it reads the labels of all kinds too."""

ANNOTATION_SPLIT = f"{GROUP}/split"
ANNOTATION_PLAN_DIGEST = f"{GROUP}/plan-digest"
ANNOTATION_PLAN_SHARDS = f"{GROUP}/plan-shards"
ANNOTATION_JOB_NAME = f"{GROUP}/job-name"

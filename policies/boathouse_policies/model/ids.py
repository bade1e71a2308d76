"""Names of things, one type each, so that one is not passed for another."""

from typing import NewType

TaskId = NewType("TaskId", str)
"""`namespace/pod-name` of the pod that the task has, or will have."""

PodUid = NewType("PodUid", str)
JobId = NewType("JobId", str)
"""The UID of the job's object (MRJob, SparkApp); of pods of others, what tells their jobs apart."""

ClassId = NewType("ClassId", str)
"""Unique over all jobs: by custom `job/step/stage`, with a suffix where one stage asks for several sizes."""

QueueName = NewType("QueueName", str)
NamespaceName = NewType("NamespaceName", str)
NodeName = NewType("NodeName", str)

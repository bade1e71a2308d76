"""Paths in the job's work folder and output."""

from boathouse_task import compression, locations
from boathouse_task.contract import TaskSpec, TaskType, attempt_name, task_name
from boathouse_task.locations import Location

SUCCESS = "_SUCCESS"
TEMPORARY = "_temporary"
OWNER = "owner-"
"""Prefix of ownership marks, followed by the generation."""
PART = "part-"


class Layout:
    """Paths of a step, from the task's URLs.

    Raises:
        TaskError: InvalidURL.
    """

    def __init__(self, spec: TaskSpec) -> None:
        self.output = locations.parse(spec.output_url)
        self.temporary = self.output.child(TEMPORARY)
        self.work = locations.parse(spec.work_url)
        self.step = self.at_step(spec.step)
        self._part_suffix = compression.SUFFIXES[spec.output_compression] if spec.output_compression else ""
        self.commits = self.step.child("_commit")
        self.promoted = self.work.child("promoted.json")
        self.plan = self.step.child("plan.json")
        self.success = self.output.child(SUCCESS)

    def at_step(self, step: int) -> Location:
        """Return a step's folder."""
        return self.work.child(f"s{step}")

    def data(self, task_type: TaskType, index: int, attempt: int, step: Location | None = None) -> Location:
        """Return the path of an attempt's data, in this step's folder or another."""
        return (step or self.step).child(f"attempts/{attempt_name(task_type, index, attempt)}.data")

    def index(self, index: int, attempt: int) -> Location:
        """Return the path of the index of a map attempt's data."""
        return self.step.child(f"attempts/{attempt_name(TaskType.MAP, index, attempt)}.index")

    def commit(self, task_type: TaskType, index: int) -> Location:
        """Return the path of a task's commit."""
        return self.commits.child(task_name(task_type, index))

    def owner(self, generation: int) -> Location:
        """Return the path of an ownership mark."""
        return self.temporary.child(f"{OWNER}{generation:05d}")

    def work_of(self, job_uid: str) -> Location:
        """Return the work folder of a job with this output."""
        return self.temporary.child(f"boathouse-{job_uid}")

    def part(self, index: int) -> Location:
        """Return the path of an output file."""
        return self.output.child(f"{PART}{index:05d}{self._part_suffix}")

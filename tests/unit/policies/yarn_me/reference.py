"""An exact look-ahead, written as plainly as can be: every end, every node, to the end of all jobs. Slow."""

import dataclasses
import math

from boathouse_policies import model


@dataclasses.dataclass
class Job:
    name: str
    submitted_s: float
    requests: list  # [left, memory, cpu, seconds] in order
    held: int = 0
    last_end_s: float = -math.inf

    @property
    def request(self):
        return next((request for request in self.requests if request[0]), None)


def finish_times(now_s, free, running, jobs, kept):
    """When each job ends if all is placed regularly from now on.

    Args:
        now_s: The time.
        free: [memory, cpu] of each node.
        running: (end_s, node, memory, cpu, job) of each task.
        jobs: Jobs by name.
        kept: The job that a node is kept for.
    """
    running = [(max(end_s, now_s), *rest) for end_s, *rest in running]
    for end_s, _, _, _, name in running:
        jobs[name].last_end_s = max(jobs[name].last_end_s, end_s)
    made = 0

    def fill(node, time_s):
        nonlocal made
        while True:
            if node in kept and jobs[kept[node]].request is None:
                del kept[node]
            waiting = [job for job in jobs.values() if job.request]
            if not waiting:
                return
            owned = node in kept
            job = jobs[kept[node]] if owned else min(waiting, key=lambda job: (job.held, job.submitted_s, job.name))
            _, memory, cpu, task_s = job.request
            if free[node][0] < memory or free[node][1] < cpu:
                kept[node] = job.name
                return
            kept.pop(node, None)
            job.request[0] -= 1
            job.held += memory
            free[node][0] -= memory
            free[node][1] -= cpu
            made += 1
            running.append((time_s + task_s, node, memory, cpu, job.name))
            job.last_end_s = max(job.last_end_s, time_s + task_s)

    for node in range(len(free)):
        fill(node, now_s)
    while running:
        first = min(range(len(running)), key=lambda i: (running[i][0], i))
        end_s, node, memory, cpu, name = running.pop(first)
        free[node][0] += memory
        free[node][1] += cpu
        jobs[name].held -= memory
        fill(node, end_s)
    return {job.name: math.inf if job.request else job.last_end_s for job in jobs.values()}


class LookAhead:
    """The same as YARN-ME asks for it: the moment at which it was made, played to the end when somebody asks."""

    def __init__(self, outlook, view, reserved):
        index = view.layout.index
        free = (view.layout.allocatable - view.requested)[[model.MEMORY, model.CPU]].T.tolist()
        running = [(end_s, index[node], memory, cpu, job) for end_s, _, node, memory, cpu, job in outlook.ends()]
        owners = {index[node]: outlook.classes[owner].job for node, owner in reserved.items()}
        self._state = view.now_s, free, running, {name: job_of(outlook, view, name) for name in outlook.jobs}, owners
        self._finish_s = None

    def reaches(self, job, time_s):
        if self._finish_s is None:
            self._finish_s = finish_times(*self._state)
        return job in self._finish_s and self._finish_s[job] >= time_s


def job_of(outlook, view, name):
    """A job of the outlook."""
    submitted = outlook.jobs[name]
    requests = [
        [
            outlook.left[task_class.id],
            task_class.resources.memory_bytes,
            task_class.resources.cpu_milli,
            duration_s(task_class),
        ]
        for task_class in submitted.classes
    ]
    return Job(name, submitted.job.submitted_s, requests, view.job_usage(name)[model.MEMORY])


def duration_s(task_class):
    return task_class.estimates.duration_s(task_class.resources)

"""The scheduling queue: pending tasks by class, and which classes the next cycle considers."""  # noqa: A005 - no stdlib

from boathouse_policies.framework.queue.queued_class import LeastSizes, QueuedClass
from boathouse_policies.framework.queue.reservations import Reservations
from boathouse_policies.framework.queue.scheduling_queue import SchedulingQueue
from boathouse_policies.framework.queue.sorted_classes import NO_CLASSES, Band, SortedClasses
from boathouse_policies.framework.queue.tasks import Closeness, Pick, Picker, TaskPool

__all__ = [
    "NO_CLASSES",
    "Band",
    "Closeness",
    "LeastSizes",
    "Pick",
    "Picker",
    "QueuedClass",
    "Reservations",
    "SchedulingQueue",
    "SortedClasses",
    "TaskPool",
]

"""The scheduling queue: pending tasks by class, and which classes the next cycle considers."""  # noqa: A005 - no stdlib

from boathouse_policies.framework.queue.queued_class import Closeness, LeastSizes, Pick, Picker, QueuedClass, TaskPool
from boathouse_policies.framework.queue.reservations import KEPT_FOR_GANG, KeptPart, Reservations
from boathouse_policies.framework.queue.scheduling_queue import SchedulingQueue
from boathouse_policies.framework.queue.sorted_classes import NO_CLASSES, Band, SortedClasses

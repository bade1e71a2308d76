"""MRJob as the frame sees it."""

from typing import Final

from boathouse.cluster import catalogue
from boathouse.resources import names
from boathouse.services.frame.kind import KindDefinition
from boathouse.services.mrjob.state.job_state import TERMINAL

MRJOB: Final = KindDefinition(
    resource=catalogue.MRJOBS.untyped(),
    terminal_phases=frozenset(TERMINAL),
    finalizer=names.FINALIZER,
    failpoints="mrjob",
    urgent_fields=("plan",),
)

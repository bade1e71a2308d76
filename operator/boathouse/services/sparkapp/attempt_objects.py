"""Create what a driver needs before its pod: the ConfigMap of its attempt, and the Service of Spark's UI."""

from boathouse.cluster import catalogue, errors
from boathouse.resources.sparkapp.names import Reason
from boathouse.services.frame.pod_life import Problem
from boathouse.services.frame.writes import Writes
from boathouse.services.sparkapp.submission.objects import Submission


async def ensure(submission: Submission, writes: Writes) -> Problem | None:
    """Create what does not exist; returns why the driver's pod must not be created yet, or None."""
    try:
        found = await writes.ensure(catalogue.CONFIG_MAPS, submission.config_map, "config-map")
    except (errors.Forbidden, errors.Invalid) as error:  # a quota, a policy
        return Problem(reason=Reason.CONFIG_MAP_REFUSED, message=error.message)
    return None if found is None else taken("ConfigMap", found["metadata"]["name"])


async def ensure_service(submission: Submission, writes: Writes) -> str:
    """Create the Service of the UI; returns why there is none, or an empty text. A driver runs without it."""
    if submission.service is None:
        return ""
    try:
        found = await writes.ensure(catalogue.SERVICES, submission.service, "service")
    except (errors.Forbidden, errors.Invalid) as error:
        return f"Spark's UI has no Service: {error.message}"
    return "" if found is None else f"Spark's UI has no Service: {taken('Service', found['metadata']['name']).message}"


def taken(kind: str, name: str) -> Problem:
    """Return the problem if an object of another owner has a name that an attempt needs."""
    message = f'there is a {kind} "{name}" that does not belong to this application: delete it'
    return Problem(reason=Reason.NAME_TAKEN, message=message)

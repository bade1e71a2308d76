"""Check that the ConfigMaps of a job's files exist."""

from boathouse.cluster import catalogue, client, errors
from boathouse.services.mrjob.job.model import Job


async def missing(api: client.ApiClient, job: Job) -> list[str]:
    """Return the missing ConfigMaps and keys. A pod that mounts one would not start, without a reason in its status."""
    messages = []
    for file in job.spec.files or ():
        reference = file.config_map_key_ref
        if reference is None:
            continue
        try:
            found = await api.get(catalogue.CONFIG_MAPS, reference.name, job.namespace)
        except errors.NotFound:
            messages.append(f'file {file.name}: ConfigMap "{reference.name}" does not exist')
            continue
        if reference.key not in {**(found.get("data") or {}), **(found.get("binaryData") or {})}:
            messages.append(f'file {file.name}: ConfigMap "{reference.name}" has no key "{reference.key}"')
    return messages

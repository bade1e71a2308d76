"""Check the ConfigMaps that the files of a job refer to."""

from boathouse.cluster import catalogue, client, errors
from boathouse.services.mrjob.job.model import Job


async def missing(api: client.ApiClient, job: Job) -> list[str]:
    """Return the missing ConfigMaps and keys; a pod that mounts a missing one would be pending without a reason."""
    messages = []
    for file in job.spec.files or ():
        reference = file.config_map_key_ref
        if reference is None:
            continue
        try:
            found = await api.get(catalogue.CONFIG_MAPS, reference.name, job.namespace)
        except errors.NotFound:
            messages.append(f'file {file.name}: there is no ConfigMap "{reference.name}"')
            continue
        if reference.key not in {**(found.get("data") or {}), **(found.get("binaryData") or {})}:
            messages.append(f'file {file.name}: ConfigMap "{reference.name}" has no key "{reference.key}"')
    return messages

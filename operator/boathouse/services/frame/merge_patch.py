"""Write models as merge patches. Pure."""

from typing import Any

from boathouse.resources import base


def cleared(part: base.Model) -> dict[str, Any]:
    """Return a model with null for each field that is absent, so that a merge patch clears what is gone.

    Lists are replaced as a whole.
    """
    found = part.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name, field in type(part).model_fields.items():
        value, key = getattr(part, name), field.alias or name
        found[key] = cleared(value) if isinstance(value, base.Model) else found.get(key)
    return found

"""CEL rules for the maps `resources.requests` and `resources.limits`."""

from boathouse.resources.base import rule


def _check(name: str, minimum: str, why: str) -> dict[str, str]:
    value = f"string(self['{name}'])"
    return rule(
        f"!('{name}' in self) || !isQuantity({value}) || quantity({value}).compareTo(quantity('{minimum}')) >= 0",
        f"'{name} \"' + {value} + '\" is less than {minimum}: {why}'",
    )


requests_rules = (
    rule(
        "self.all(name, name in ['cpu', 'memory', 'ephemeral-storage'] || name.contains('/'))",
        "requests may hold cpu, memory, ephemeral-storage and extended resources (example.com/name)",
    ),
    _check("cpu", "1m", "a task needs some CPU"),
    _check("memory", "64Mi", "the task runtime itself needs that much"),
)
limits_rules = (
    rule(
        "self.all(name, name == 'cpu')",
        "limits may hold cpu only: the memory limit is requests.memory; remove the others",
    ),
)

"""CEL rules for the maps `resources.requests` and `resources.limits`."""

from boathouse.resources.base import SHORT_KEYS, rule


def _at_least(name: str, minimum: str, why: str) -> dict[str, str]:
    return _compared(name, ">=", minimum, f"is less than {minimum}: {why}")


def _at_most(name: str, maximum: str, why: str) -> dict[str, str]:
    return _compared(name, "<=", maximum, f"is more than {maximum}: {why}")


def _compared(name: str, comparison: str, bound: str, complaint: str) -> dict[str, str]:
    value = f"string(self['{name}'])"
    holds = f"quantity({value}).compareTo(quantity('{bound}')) {comparison} 0"
    return rule(
        f"!('{name}' in self) || !isQuantity({value}) || {holds}",
        f"'{name} \"' + {value} + '\" {complaint}'",
    )


_most_cpu = _at_most("cpu", "1M", "no node has so many cores; lower it")
requests_rules = (
    SHORT_KEYS,
    rule(
        "self.all(name, name in ['cpu', 'memory', 'ephemeral-storage'] || name.contains('/'))",
        "requests may hold cpu, memory, ephemeral-storage and extended resources (example.com/name)",
    ),
    _at_least("cpu", "1m", "a task needs some CPU"),
    _at_least("memory", "64Mi", "the task runtime itself needs that much"),
    _most_cpu,
)
limits_rules = (
    rule(
        "self.all(name, name == 'cpu')",
        "limits may hold cpu only: the memory limit is requests.memory; remove the others",
    ),
    _most_cpu,
)

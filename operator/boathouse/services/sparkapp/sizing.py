"""What driver and executors request, computed from the properties as Spark computes it. Pure.

Every rule here is held against recordings of Spark's own submission (`tests/spark`). All functions raise a ValueError
for a property that is not what Spark reads.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Final

from boathouse.resources import quantity

Properties = Mapping[str, str]
MIB: Final = 1024**2
HEAP: Final = "spark.executor.memory"
DEFAULT_MEMORY: Final = "1g"
_LARGEST_FACTOR: Final = 1000.0
_MOST_MIB: Final = 256 * 1024**2
_MOST_CPU_MILLI: Final = 10**9
"""Bounds of the fields, for what is in `sparkConf`: no node has so much."""
_SIZE: Final = re.compile(r"(?P<number>[0-9]+)(?P<unit>[a-z]*)")
_BYTES: Final[Mapping[str, int]] = {
    name: 1024**power
    for power, names in enumerate((("b",), ("k", "kb"), ("m", "mb"), ("g", "gb"), ("t", "tb"), ("p", "pb")))
    for name in names
}


def mebibytes(text: str, *, unit: str = "m") -> int:
    """Return a size in MiB, rounded down; `unit` is that of a number without one."""
    match = _SIZE.fullmatch(text.strip().lower())
    factor = _BYTES.get(match["unit"] or unit) if match else None
    if match is None or factor is None or len(match["number"]) > len(str(2**63 - 1)):
        raise ValueError(f'"{text[:64]}" is not a size for Spark: write a whole number with a unit, such as 512m or 2g')
    return int(match["number"]) * factor // MIB


def spark_size(size: str) -> str:
    """Return the size of a field as Spark reads it: `2Gi` is `2g`."""
    return re.sub(r"i?b?$", "", size.lower())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What a pod requests, as Spark writes it; the memory is also its limit."""

    cpu: str
    memory_mib: int
    cpu_limit: str = ""
    extended: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.cpu_milli <= _MOST_CPU_MILLI:
            raise ValueError(f"a CPU request of {self.cpu} is not between 1m and 1M: correct it")
        if self.memory_mib > _MOST_MIB:
            raise ValueError(f"{self.memory_mib} MiB of memory are more than 256Ti: no node has so much; lower it")

    @property
    def cpu_milli(self) -> int:
        """Return the CPU request in thousandths of a core."""
        return quantity.milli(self.cpu)

    @property
    def memory_bytes(self) -> int:
        """Return the memory request in bytes."""
        return self.memory_mib * MIB

    @property
    def requests(self) -> dict[str, str]:
        """Return the requests of the container, as Spark writes them."""
        return {"cpu": self.cpu, "memory": f"{self.memory_mib}Mi"}

    @property
    def limits(self) -> dict[str, str]:
        """Return the limits of the container, as Spark writes them."""
        cpu = {"cpu": self.cpu_limit} if self.cpu_limit else {}
        extended = {name: str(count) for name, count in self.extended}
        return {**cpu, "memory": f"{self.memory_mib}Mi", **extended}


def default_factor(properties: Properties, *, is_python: bool) -> str:
    """Return the overhead factor of both roles; the driver hands it on to its executors as a property."""
    return properties.get("spark.kubernetes.memoryOverheadFactor", "0.4" if is_python else "0.1")


def driver(properties: Properties, *, is_python: bool) -> Requests:
    """Return what the driver's pod requests."""
    return _requests("driver", properties, 0, is_python=is_python)


def executor(properties: Properties, *, is_python: bool) -> Requests:
    """Return what an executor's pod with the default resource profile requests."""
    beside_mib = mebibytes(properties.get("spark.executor.pyspark.memory", "0")) if is_python else 0
    if is_true(properties, "spark.memory.offHeap.enabled"):  # the driver uses it as well, but Spark does not request it
        beside_mib += mebibytes(properties.get("spark.memory.offHeap.size", "0"), unit="b")
    return _requests("executor", properties, beside_mib, is_python=is_python)


def _requests(role: str, properties: Properties, beside_mib: int, *, is_python: bool) -> Requests:
    heap_mib = mebibytes(properties.get(f"spark.{role}.memory", DEFAULT_MEMORY))
    request, limit = (properties.get(f"spark.kubernetes.{role}.{bound}.cores") for bound in ("request", "limit"))
    for text in (request, limit):
        if text is not None:
            quantity.parse(text)
    return Requests(
        cpu=str(whole(f"spark.{role}.cores", properties, 1)) if request is None else request,
        cpu_limit=limit or "",
        memory_mib=heap_mib + _overhead(role, properties, heap_mib, is_python=is_python) + beside_mib,
        extended=_extended(role, properties),
    )


def minimum_executors(properties: Properties) -> int:
    """Return how many executors must have room before the driver starts."""
    if is_dynamic(properties):
        return whole("spark.dynamicAllocation.minExecutors", properties, 0)
    return whole("spark.executor.instances", properties, 2)


def maximum_executors(properties: Properties) -> int:
    """Return how many executors an application with dynamic allocation may have."""
    return whole("spark.dynamicAllocation.maxExecutors", properties, 2**31 - 1)


def is_dynamic(properties: Properties) -> bool:
    """Return whether the number of executors follows the work."""
    return is_true(properties, "spark.dynamicAllocation.enabled")


def is_true(properties: Properties, key: str) -> bool:
    """Return whether a property is set to true."""
    return properties.get(key, "false").strip().lower() == "true"


def _overhead(role: str, properties: Properties, heap: int, *, is_python: bool) -> int:
    given = properties.get(f"spark.{role}.memoryOverhead")
    if given is not None:
        return mebibytes(given)
    key = f"spark.{role}.memoryOverheadFactor"
    factor = _number(key, properties.get(key, default_factor(properties, is_python=is_python)))
    return max(int(factor * heap), mebibytes(properties.get(f"spark.{role}.minMemoryOverhead", "384m")))


def _extended(role: str, properties: Properties) -> tuple[tuple[str, int], ...]:
    """The resources that Spark requests for its own discovery: `spark.executor.resource.gpu.{amount,vendor}`."""
    prefix, suffix = f"spark.{role}.resource.", ".amount"
    amounts = []
    for key in properties:
        if not (key.startswith(prefix) and key.endswith(suffix)):
            continue
        name = key[len(prefix) : -len(suffix)]
        vendor = properties.get(f"{prefix}{name}.vendor")
        if not vendor:
            raise ValueError(f"{key} needs {prefix}{name}.vendor, such as nvidia.com: add it")
        amounts.append((f"{vendor}/{name}", whole(key, properties, 0)))
    return tuple(sorted(amounts))


def whole(
    key: str, properties: Properties, default: int, *, what: str = "a whole number", most: int = 10**10 - 1
) -> int:
    """Return a property that is a whole number."""
    text = properties.get(key, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most):
        raise ValueError(f'{key} is "{text[:64]}", which is not {what}: correct it')
    return int(text)


def _number(key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number <= _LARGEST_FACTOR:
        raise ValueError(f'{key} is "{text[:64]}", which is not a number above 0: correct it')
    return number

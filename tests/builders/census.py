"""Census of a process: how many items all containers, caches and instances of the operator's code hold.

A container is named by the class and attribute that hold it, and counted over all instances of the class, so two
censuses compare whatever the paths to the instances are.
"""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    _Variable = tuple[str, str, Any]
    """Its owner, its name and its value."""

OWN = ("boathouse", "boathouse_policies", "boathouse_task")
"""Packages that are counted in tests."""
_CONTAINERS = (dict, list, set, frozenset, tuple, collections.deque, types.MappingProxyType)
_LRU = type(functools.lru_cache(lambda: None))


def take(packages: tuple[str, ...] = OWN) -> dict[str, int]:
    """Return the number of items by `module.Class.attribute`, and of instances by `module.Class`.

    A cache of results that has a limit is not counted.

    `attribute[]` are the containers within a container. Globals of modules, variables of functions' closures and of
    suspended coroutines are counted too.
    """
    gc.collect()
    counts: collections.Counter[str] = collections.Counter()
    counted: set[tuple[str, int]] = set()
    for owner, name, value in itertools.chain(_globals(packages), _variables(packages, counts)):
        _count(counts, counted, f"{owner}.{name}", value)
    return dict(counts)


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return what grew: its counts before and after."""
    return {name: (before.get(name, 0), count) for name, count in after.items() if count > before.get(name, 0)}


def _globals(packages: tuple[str, ...]) -> Iterator[_Variable]:
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] in packages:
            found = ((name, value) for name, value in list(vars(module).items()) if not name.startswith("__"))
            yield from ((module_name, name, value) for name, value in found)


def _variables(packages: tuple[str, ...], counts: collections.Counter[str]) -> Iterator[_Variable]:
    """Count the instances of these packages' classes, and yield what they, functions and coroutines hold.

    A process of tests has millions of objects and few types, so each type is asked once.
    """
    is_own = functools.cache(functools.partial(_is_of, packages))
    for found in gc.get_objects():
        cls = type(found)
        if is_own(cls):
            counts[_name(cls)] += 1
            yield from ((_name(cls), name, value) for name, value in _attributes(found))
        elif cls is types.FunctionType:
            if found.__closure__ and _is_of(packages, found):
                yield from ((_name(found), name, value) for name, value in _closure(found))
        elif cls is types.CoroutineType:
            if found.cr_frame is not None and _is_frame_of(packages, found.cr_frame):
                yield from ((f"{found.__qualname__}()", name, value) for name, value in found.cr_frame.f_locals.items())
        elif cls is _LRU and _is_of(packages, found.__wrapped__):
            info = found.cache_info()
            counts[f"{_name(found.__wrapped__)}()"] += info.currsize if info.maxsize is None else 0


def _closure(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if cell != types.CellType():
            yield name, cell.cell_contents


def _is_frame_of(packages: tuple[str, ...], frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in packages


def _attributes(found: Any) -> Iterator[tuple[str, Any]]:
    yield from list(getattr(found, "__dict__", {}).items())
    for cls in type(found).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots if isinstance(slots, tuple | list) else ():
            if name not in {"__dict__", "__weakref__"} and hasattr(found, name):
                yield name, getattr(found, name)
    if isinstance(found, dict):
        yield "items", dict(found)
    elif isinstance(found, list | set | collections.deque) and not isinstance(found, type):
        yield "items", list(found)


def _count(counts: collections.Counter[str], counted: set[tuple[str, int]], name: str, value: Any) -> None:
    """Count a container and those in it, each once for a name: it may be shared between instances of a class."""
    todo = [(name, value)]
    while todo:
        name, value = todo.pop()
        if isinstance(value, np.ndarray):
            counts[name] += value.size
        if not isinstance(value, _CONTAINERS) or (name, id(value)) in counted:
            continue
        counted.add((name, id(value)))
        counts[name] += len(value)
        inner = list(value.values() if isinstance(value, dict | types.MappingProxyType) else value)
        todo += [(f"{name}[]", item) for item in inner if isinstance(item, (*_CONTAINERS, np.ndarray))]


def _is_of(packages: tuple[str, ...], found: Any) -> bool:
    module = getattr(found, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in packages


def _name(found: Any) -> str:
    return f"{found.__module__}.{found.__qualname__}"

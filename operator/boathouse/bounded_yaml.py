"""Read YAML that somebody else wrote, within bounds: aliases let a small text stand for an endless document."""

from collections.abc import Iterator
from typing import Any, Final

import yaml

MAX_NODES: Final = 100_000
"""Maximum scalars, lists and mappings of a text, those that aliases repeat counted each time."""
MAX_DEPTH: Final = 64
"""Maximum depth of lists and mappings; those of Kubernetes have some 20."""
MAX_DIGITS: Final = 64
"""Maximum characters of a number: the time to read one grows with their square."""


class _Loader(yaml.CSafeLoader):
    """Constructs plain values, and numbers of limited length."""

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        if len(node.value) > MAX_DIGITS:
            problem = f"a number has more than {MAX_DIGITS} characters"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        construct = self.construct_yaml_int if node.tag.endswith(":int") else self.construct_yaml_float
        number: int | float = construct(node)
        return number


for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _Loader.construct_number)


class _Sizes:
    """Counts the nodes of a text as its events come, without building them."""

    def __init__(self) -> None:
        self._open: list[tuple[str | None, int]] = []  # anchor, and the count before it
        self._of_anchor: dict[str, int] = {}
        self._count = 0

    def add(self, event: yaml.Event) -> None:
        """Count an event; raises `yaml.YAMLError` if the text exceeds a bound."""
        match event:
            case yaml.AliasEvent():
                self._count += self._expanded(event)
            case yaml.CollectionStartEvent():
                self._open.append((event.anchor, self._count))
                self._count += 1
            case yaml.ScalarEvent():
                self._count += 1
                if event.anchor is not None:
                    self._of_anchor[event.anchor] = 1
            case yaml.CollectionEndEvent():
                anchor, before = self._open.pop()
                if anchor is not None:
                    self._of_anchor[anchor] = self._count - before
            case yaml.DocumentStartEvent():
                self._of_anchor.clear()
            case _:
                pass
        if self._count > MAX_NODES:
            raise _refused(event, f"has more than {MAX_NODES} values, those that aliases repeat counted each time")
        if len(self._open) > MAX_DEPTH:
            raise _refused(event, f"has lists and mappings more than {MAX_DEPTH} deep")

    def _expanded(self, event: yaml.AliasEvent) -> int:
        """Return the number of nodes that an alias repeats; of an unknown anchor none, which the loader refuses."""
        if any(anchor == event.anchor for anchor, _ in self._open):
            raise _refused(event, f"has the alias {event.anchor} inside of what it repeats")
        return self._of_anchor.get(event.anchor or "", 0)


def load_all(text: str) -> Iterator[Any]:
    """Yield the documents of a text as plain values; raises `ValueError` if it is not YAML or exceeds a bound."""
    sizes = _Sizes()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            sizes.add(event)
        yield from yaml.load_all(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def load(text: str) -> Any:
    """Return the only document of a text, None if it is empty; raises `ValueError` as `load_all`, or for several."""
    documents = list(load_all(text))
    if len(documents) > 1:
        raise ValueError(f"it has {len(documents)} documents instead of one")
    return documents[0] if documents else None


def _refused(event: yaml.Event, why: str) -> yaml.YAMLError:
    return yaml.YAMLError(f"the text {why}\n{event.start_mark}")

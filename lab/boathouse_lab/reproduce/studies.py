"""The studies there are, by the names of papers; a study is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse_lab.reproduce.study import Study

ALL = "all"


def _yarn_me() -> Study:
    from boathouse_lab.reproduce.yarn_me.study import YarnMe

    return YarnMe()


def _fspy() -> Study:
    from boathouse_lab.reproduce.fspy import Fspy

    return Fspy()


def _ila() -> Study:
    from boathouse_lab.reproduce.ila.study import Ila

    return Ila()


def _koala() -> Study:
    from boathouse_lab.reproduce.koala.study import Koala

    return Koala()


def _ikayak() -> Study:
    from boathouse_lab.reproduce.ikayak.study import IKayak

    return IKayak()


def _combination() -> Study:
    from boathouse_lab.reproduce.combination import Combination

    return Combination()


_STUDIES: dict[str, Callable[[], Study]] = {
    "yarn-me": _yarn_me,
    "fspy": _fspy,
    "ikayak": _ikayak,
    "ila": _ila,
    "koala": _koala,
    "boathouse": _combination,
}


def names() -> tuple[str, ...]:
    """Return all papers that can be reproduced, in the order in which `all` runs them."""
    return tuple(_STUDIES)


def chosen(name: str) -> tuple[Study, ...]:
    """Return the studies of a paper's name, or of `all`.

    Raises:
        ValueError: There is no such paper; the message lists those there are.
    """
    if name == ALL:
        return tuple(build() for build in _STUDIES.values())
    if name not in _STUDIES:
        raise ValueError(f'there is no study of "{name}": choose from {", ".join([*names(), ALL])}')
    return (_STUDIES[name](),)

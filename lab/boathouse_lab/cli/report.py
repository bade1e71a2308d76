"""Render all claims and figures of studies as one self-contained HTML page."""

from __future__ import annotations

import dataclasses
from importlib import metadata
from typing import TYPE_CHECKING

import jinja2
import markupsafe

from boathouse_lab.cli import drawing, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_lab.reproduce.study import Findings, Scale


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Section of one paper."""

    paper: str
    title: str
    findings: Findings


def to_html(parts: Sequence[Part], scale: Scale) -> str:
    """Return the page, which loads nothing from other hosts."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("boathouse_lab.cli"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("reproduce.html.j2").render(
        parts=parts,
        scale=scale,
        version=metadata.version("boathouse"),
        text=text,
        svg=lambda figure: markupsafe.Markup(drawing.to_svg(figure)),  # noqa: S704  drawn here, not given
    )

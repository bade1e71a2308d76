"""Agreement with DSS, the simulator of the paper's authors, on two workloads whose results were measured with it."""

from __future__ import annotations

import dataclasses
import functools
import json
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from boathouse_lab.reproduce import figures
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import per_cent
from boathouse_lab.reproduce.yarn_me.case import ELASTIC, MEGANODE, UNRESERVED, YARN, Case
from boathouse_lab.reproduce.yarn_me.experiment import PAPER, job_time_s
from boathouse_sim import neutral

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boathouse_lab.reproduce.yarn_me.case import Seen
    from boathouse_sim.workload import Workload

NAMES: Final = ("table2-uniform-24", "table2-exponential-60x30")
THEIRS: Final = {
    YARN: "YARN",
    UNRESERVED: "YARN without reservations",
    MEGANODE: "Meganode",
    ELASTIC: "YARN-ME",
}
NEAR: Final = 0.05
"""Part of DSS's mean, and points of its gain, within which we agree."""
HEARTBEAT_S: Final = 1.0
DISK_BYTES_PER_S: Final = 100e6


def _file(name: str) -> Any:
    return resources.files("boathouse_lab") / "workloads" / f"{name}.json"


@functools.cache
def stored(name: str) -> Workload:
    """Load a workload that is shipped."""
    with resources.as_file(_file(name)) as path:
        return neutral.read_neutral(path)


def dss(name: str) -> dict[str, dict[str, float]]:
    """Return DSS's results for it, by its names of policies."""
    found: dict[str, dict[str, float]] = json.loads(_file("dss-results").read_text())["workloads"][name]
    return found


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A workload that is shipped; nothing in it is drawn."""

    name: str

    @property
    def tasks_about(self) -> float:
        """Exactly."""
        return stored(self.name).tasks

    def draw(self, seed: int) -> Workload:  # noqa: ARG002  it is what it is
        """Return the workload."""
        return stored(self.name)


def case(name: str, profile: str, *, beating: bool = True, disk: bool = False) -> Case:
    """Return a case with DSS's rules, which are those with heartbeats."""
    return Case(
        recipe=Stored(name=name),
        seed=0,
        profile=profile,
        heartbeat_s=HEARTBEAT_S if beating else None,
        disk_bytes_per_s=DISK_BYTES_PER_S if disk else None,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Both workloads under all four policies."""

    names: tuple[str, ...] = NAMES

    def cases(self) -> Iterable[Case]:
        """Return the cases with heartbeats and without; YARN-ME also with a disk budget."""
        for name in self.names:
            for beating in (True, False):
                yield from (case(name, profile, beating=beating) for profile in THEIRS)
                yield case(name, ELASTIC, beating=beating, disk=True)

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return the findings: a row for each workload and policy."""
        claims = [claim for name in self.names for claim in self._rows(seen, name)]
        return Findings(claims=tuple(claims), figures=(self._figure(seen),))

    def _rows(self, seen: Mapping[Case, Seen], name: str) -> Iterable[Claim]:
        theirs = dss(name)
        for profile in (YARN, UNRESERVED, MEGANODE):
            value = theirs[THEIRS[profile]]["mean_job_time_s"]
            at_once = job_time_s(seen[case(name, profile, beating=False)])
            yield Claim(
                **sourced(PAPER, f"dss-{name}-{profile}"),
                claim=f"{name}: mean job time of {profile} agrees with DSS's within 5 %",
                figure="Section 6.1",
                relation=Relation.EQ,
                paper_value=value,
                tolerance=NEAR * value,
                value=job_time_s(seen[case(name, profile)]),
                unit="s",
                assumptions=(
                    Assumption(
                        name="heartbeats", value="1 s, as DSS", effect=f"tasks start when they fit: {at_once:,.0f} s"
                    ),
                ),
            )
        yield self._gain(seen, name, theirs)

    def _gain(self, seen: Mapping[Case, Seen], name: str, theirs: Mapping[str, Mapping[str, float]]) -> Claim:
        yarn = theirs["YARN"]["mean_job_time_s"]
        return Claim(
            **sourced(PAPER, f"dss-{name}-gain"),
            claim=f"{name}: gain of YARN-ME over YARN agrees with DSS's within 5 points",
            figure="Section 6.1",
            relation=Relation.EQ,
            paper_value=1 - theirs["YARN-ME"]["mean_job_time_s"] / yarn,
            tolerance=NEAR,
            value=self._of(seen, name),
            baseline=job_time_s(seen[case(name, YARN)]),
            baseline_name="yarn: mean job time [s]",
            unit="%",
            assumptions=(
                Assumption(
                    name="heartbeats",
                    value="1 s, as DSS",
                    effect=f"tasks start when they fit: {per_cent(self._of(seen, name, beating=False))}",
                ),
                Assumption(
                    name="disk budget of elastic tasks",
                    value="none, as DSS",
                    effect=f"half of 100 MB/s: {per_cent(self._of(seen, name, disk=True))} with heartbeats, "
                    f"{per_cent(self._of(seen, name, beating=False, disk=True))} without",
                ),
                Assumption(
                    name="node reservations of the baseline",
                    value="as DSS's -r",
                    effect=f"against YARN without them: {per_cent(self._of(seen, name, baseline=UNRESERVED))}",
                ),
            ),
        )

    @staticmethod
    def _of(
        seen: Mapping[Case, Seen], name: str, *, baseline: str = YARN, beating: bool = True, disk: bool = False
    ) -> float:
        ours = job_time_s(seen[case(name, ELASTIC, beating=beating, disk=disk)])
        return 1 - ours / job_time_s(seen[case(name, baseline, beating=beating)])

    def _figure(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        panels = []
        for name in self.names:
            theirs = tuple(dss(name)[their_profile]["mean_job_time_s"] for their_profile in THEIRS.values())
            beating = tuple(job_time_s(seen[case(name, profile)]) for profile in THEIRS)
            at_once = tuple(job_time_s(seen[case(name, profile, beating=False)]) for profile in THEIRS)
            panels.append(
                figures.Panel(
                    title=name,
                    x=figures.Axis(label=""),
                    y=figures.Axis(label="Mean job time [s]", low=0),
                    marks=(
                        figures.Bars(label="DSS", values=theirs, paper=True),
                        figures.Bars(label="ours, heartbeats", values=beating),
                        figures.Bars(label="ours, at once", values=at_once),
                    ),
                    categories=tuple(profile.replace("yarn-no-reservations", "yarn-no-res.") for profile in THEIRS),
                )
            )
        return figures.Figure(
            name="Section 6.1",
            title="Agreement with DSS",
            panels=tuple(panels),
            paper_shape="The authors' simulator, run on the same two workloads.",
            our_shape="With its heartbeat rules ours agrees; without heartbeats jobs are somewhat faster.",
        )

"""Objects that cannot be represented: each was the end of every leader for as long as it existed."""

from boathouse_e2e.hostile import job, pod
from tests.hostile.form import Attack

HUGE = {"cpu": "10P", "memory": "16Mi"}
ELSEWHERE = {"schedulerName": "other", "nodeName": "kwok-0"}


def step(**requests):
    return {"command": ["cat"], "resources": {"requests": requests}}


def with_sums():
    """Each amount is possible by itself; their sums over containers and over the node are not."""
    for number in range(8):
        manifest = pod(f"large-{number}", requests={"cpu": "4P", "memory": "4E"}, **ELSEWHERE)
        manifest["spec"]["containers"] = [{**manifest["spec"]["containers"][0], "name": f"c{n}"} for n in range(4)]
        yield manifest


def extended(name, amounts, **spec):
    """A pod with extended resources, of which request and limit must be equal."""
    manifest = pod(name, **spec)
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m", **amounts}, "limits": amounts}
    return manifest


ATTACKS = (
    Attack(name="a pod of 10P CPUs for our scheduler", objects=lambda: [pod("huge", requests=HUGE)]),
    Attack(
        name="a pod of 10P CPUs that is on a node",
        objects=lambda: [pod("huge", requests=HUGE, **ELSEWHERE)],
    ),
    Attack(
        name="both kinds of pods in the list of a new leader",
        objects=lambda: [pod("huge", requests=HUGE), pod("placed", requests=HUGE, **ELSEWHERE)],
        first=True,
        long=True,
    ),
    Attack(name="pods whose sums overflow", objects=with_sums),
    Attack(
        name="pods of 1e18 of everything",
        objects=lambda: [
            pod(f"exponent-{n}", requests={"cpu": amount, "memory": amount, "ephemeral-storage": amount})
            for n, amount in enumerate(("1e18", "9e18", "1E", "9223372036854775807", "123456789n"))
        ],
        long=True,
    ),
    Attack(
        name="a pod of 9e15 of an extended resource",
        objects=lambda: [
            extended("devices", {"example.com/device": "9000000000000000"}),
            extended("placed", {"example.com/device": "9000000000000000"}, **ELSEWHERE),
        ],
    ),
    Attack(
        name="pods of a thousand extended resources",
        objects=lambda: [
            extended(f"many-{pod_}", {f"example.com/r{pod_}-{n}": "1" for n in range(25)}) for pod_ in range(40)
        ],
    ),
    Attack(
        name="a job whose tasks request 10P CPUs",
        objects=lambda: [job("huge", mapper=step(cpu="10P"))],
        refused="cpu",
    ),
    Attack(
        name="a job whose tasks request 9e18 of an extended resource",
        objects=lambda: [job("devices", mapper=step(**{"example.com/device": "9000000000000000000"}))],
        refused="example.com/device|more than",
        long=True,
    ),
    Attack(
        name="a job named boathouse-fence without its priority class",
        objects=lambda: [job("boathouse-fence", podTemplate={"priorityClassName": "missing"})],
        most_refused=8,
    ),
)

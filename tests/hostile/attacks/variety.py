"""Objects that are all different, or as large as the API server accepts: neither time nor memory may follow them."""

from boathouse.cluster import catalogue
from boathouse_e2e import hostile
from boathouse_e2e.hostile import job, pod
from tests.hostile.form import Attack

TOO_COMPLEX = "TooComplex"
NEVER = {"matchExpressions": [{"key": "no-such-label", "operator": "Exists"}]}


def required(terms):
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def shapes(number):
    """Pods of which no two request the same, and which fit nowhere."""
    return lambda: (pod(f"shape-{n}", requests={"cpu": f"{20_000 + n}m", "memory": "16Mi"}) for n in range(number))


def fitting_shapes(number):
    """The same, of pods that are placed."""
    return lambda: (pod(f"shape-{n}", requests={"cpu": "1m", "memory": f"{1000 + n}Ki"}) for n in range(number))


def selectors(number):
    return lambda: (pod(f"selector-{n}", nodeSelector={f"key-{n}": f"value-{n}"}) for n in range(number))


def long_lists(number, size_bytes):
    """Required node affinity with as many values as fit into an object."""

    def make():
        for n in range(number):
            values = [f"{n:04d}-{i:08d}-{'v' * 40}" for i in range(size_bytes // 60)]
            yield pod(
                f"affine-{n}", **required([{"matchExpressions": [{"key": "k", "operator": "In", "values": values}]}])
            )

    return make


def tolerant(number, tolerations_per_pod):
    return lambda: (
        pod(
            f"tolerant-{n}",
            tolerations=[{"key": f"k-{n}-{i}", "operator": "Exists"} for i in range(tolerations_per_pod)],
        )
        for n in range(number)
    )


def annotated(number):
    """Pods and jobs with annotations of 256 KiB, the most that Kubernetes accepts."""
    metadata = {"annotations": {"junk": "x" * (255 * 1024)}}

    def make():
        for n in range(number):
            yield pod(f"noted-{n}", requests={"cpu": "20"}, metadata=metadata)
            yield job(f"noted-{n}", metadata=metadata, suspend=True)

    return make


def largest_jobs(number):
    """Jobs with as much in them as the definition lets in."""

    def make():
        for n in range(number):
            command = ["x" * 4000] * 16
            env = [{"name": f"V{i}", "value": "v" * 1000} for i in range(128)]
            inputs = [f"s3://b/{n}/{i}/{'i' * 900}" for i in range(64)]
            stage = {"command": command, "resources": {"requests": {"cpu": "20", "memory": "64Mi"}}}
            yield job(f"large-{n}", mapper=stage, env=env, input=inputs, suspend=True)

    return make


def with_commands(size_bytes):
    """A job of one stage whose command has so many characters."""
    stage = {"command": ["x" * 4000] * (size_bytes // 4000)}
    return job("long-commands", mapper=stage)


def waiting_jobs(number):
    return lambda: (job(f"waiting-{n}") for n in range(number))


def managed(number):
    """Objects that many field managers have written."""

    async def act(siege):
        for n in range(number):
            await siege.attacker.create(pod(f"managed-{n}", requests={"cpu": "20"}))
            for manager in range(40):
                labels = {f"label-{manager}-{i}-{'l' * 40}": "v" for i in range(20)}
                await siege.attacker.api.patch(
                    catalogue.PODS.untyped(), f"managed-{n}", {"metadata": {"labels": labels}}, hostile.ATTACKER
                )

    return act


def apart(number, *, placed):
    """Pods that exclude pods of all namespaces, each by a selector of its own, and are placed or fit nowhere."""

    def make():
        for n in range(number):
            absent = {"matchExpressions": [{"key": f"key-{n}", "operator": "DoesNotExist"}]}
            term = {"topologyKey": "no-such-label", "labelSelector": absent, "namespaceSelector": {}}
            terms = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            nowhere = {} if placed else {"nodeSelector": {"no-such-label": f"x-{n}"}}
            yield pod(f"apart-{n}", requests={"cpu": "1m"}, affinity=terms, **nowhere)

    return make


async def says_that_it_is_too_complex(siege):
    """Beyond the bound of the namespace pods wait, and say why."""

    async def is_explained():
        conditions = [condition for pod_view in await siege.pods() for condition in pod_view.status.conditions]
        return any(TOO_COMPLEX in condition.message or condition.reason == TOO_COMPLEX for condition in conditions)

    await siege.until(is_explained, f"a pod of the attacker waits with the reason {TOO_COMPLEX}")


FEW = 600
"""More than the chart's tenantLimits.maxShapes (500)."""

ATTACKS = (
    Attack(
        name="600 pods of 600 shapes",
        objects=shapes(FEW),
        holds=says_that_it_is_too_complex,
        most_writes=1_400,
        most_events=1_400,
    ),
    Attack(
        name="10,000 pods of 10,000 shapes",
        objects=shapes(10_000),
        holds=says_that_it_is_too_complex,
        most_writes=12_000,
        most_events=12_000,
        long=True,
    ),
    Attack(
        name="2,000 pods of 2,000 shapes that fit",
        objects=fitting_shapes(2_000),
        most_writes=5_000,
        most_events=5_000,
        long=True,
    ),
    Attack(
        name="600 selectors",
        objects=selectors(FEW),
        holds=says_that_it_is_too_complex,
        most_writes=1_400,
        most_events=1_400,
    ),
    Attack(
        name="2,000 selectors",
        objects=selectors(2_000),
        holds=says_that_it_is_too_complex,
        most_writes=4_000,
        most_events=4_000,
        long=True,
    ),
    Attack(
        name="300 selectors of the pods of all namespaces",
        objects=apart(300, placed=True),
        most_writes=900,
        most_events=900,
    ),
    Attack(
        name="2,000 selectors of the pods of all namespaces",
        objects=apart(2_000, placed=True),
        most_writes=6_000,
        most_events=6_000,
        long=True,
    ),
    Attack(
        name="600 pending pods that select the pods of all namespaces",
        objects=apart(FEW, placed=False),
        holds=says_that_it_is_too_complex,
        most_writes=1_400,
        most_events=1_400,
    ),
    Attack(name="affinity lists of 1 MB", objects=long_lists(5, 1_000_000), holds=says_that_it_is_too_complex),
    Attack(
        name="100 affinity lists of 1 MB",
        objects=long_lists(100, 1_000_000),
        most_writes=500,
        most_events=500,
        long=True,
    ),
    Attack(name="pods with 1,000 tolerations each", objects=tolerant(20, 1_000), most_writes=300, long=True),
    Attack(
        name="40 pods and jobs with the largest annotations", objects=annotated(40), most_writes=400, most_events=400
    ),
    Attack(
        name="400 pods and jobs with the largest annotations",
        objects=annotated(400),
        most_writes=2_000,
        most_events=2_000,
        long=True,
    ),
    Attack(
        name="a job whose commands have 256,000 characters",
        objects=lambda: [with_commands(256_000)],
        refused="characters in total",
    ),
    Attack(name="40 jobs of the largest size", objects=largest_jobs(40), most_writes=400, most_events=400),
    Attack(
        name="600 jobs of the largest size", objects=largest_jobs(600), most_writes=2_000, most_events=2_000, long=True
    ),
    Attack(
        name="1,000 jobs that wait",
        objects=waiting_jobs(1_000),
        most_writes=6_000,
        most_events=6_000,
        most_reviews=1100,
        long=True,
    ),
    Attack(name="pods that forty managers have written", act=managed(5), most_writes=300, long=True),
)

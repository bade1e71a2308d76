"""How many unfinished objects of a namespace are admitted."""

from hypothesis import given, strategies as st

from boathouse.services.frame.admission import Admission
from tests.builders.frame import unfinished_boat


def test_admission_searches_and_does_not_iterate_over_all_jobs():
    admission, compared = Admission(limit=10), []

    class Uid(str):
        __slots__ = ()

        def __lt__(self, other):
            compared.append(1)
            return str.__lt__(self, other)

    jobs = [{"metadata": {"uid": Uid(f"{number:05}"), "creationTimestamp": ""}} for number in range(5000)]
    for job in jobs:
        admission.put("demo/x", job)
    compared.clear()
    assert not admission.admits("demo/x", jobs[-1])
    assert len(compared) < 50


CHANGES = st.tuples(st.sampled_from("abcdef"), st.integers(0, 3000), st.booleans(), st.booleans())


@given(st.lists(CHANGES, max_size=20))
def test_the_admitted_jobs_are_the_longest_prefix_that_fits(changes):
    admission, existing = Admission(limit=2, limit_bytes=5000), {}
    for name, size, suspended, gone in changes:
        job = unfinished_boat(name) | {"spec": {"suspend": suspended}}
        if gone:
            admission.remove(f"demo/{name}", job)
            existing.pop(name, None)
        else:
            admission.put(f"demo/{name}", job, size)
            existing[name] = job, size
    number = total = 0
    for name, (job, size) in sorted(existing.items()):
        number, total = number + (not job["spec"]["suspend"]), total + size
        assert admission.admits(f"demo/{name}", job) == (number <= 2 and total <= 5000)

"""The benchmark of the profile's parts: what it prints of a guard."""

from benchmarks import parts
from boathouse_policies.profiles.guard import Guard, Part


def test_each_part_that_decided_says_what_it_was_to_save_and_saved():
    guard = Guard()
    for _ in range(16):
        guard.ended((Part.MEMORY, "ns", "etl"), 1.0, 1.0, 10.0, 0.0)
    assert parts.report("cpu", 3, guard) == [
        "cpu, seed 3, memory: 16 decisions were to save 16.0 s and saved -144.0 s; 1 alarms"
    ]

"""The benchmark of suspensions: what it reports of its measurements."""

from benchmarks import suspensions


def took_s(suspend, resume, bare):
    medians_s = {suspensions.ANNOTATED: suspend + 0.2, suspensions.SUSPEND: suspend, suspensions.RESUME: resume}
    return {what: [s, s, s, s + 0.5] for what, s in (medians_s | {suspensions.BARE: bare}).items()}


def test_medians_are_compared_with_the_bare_resize_and_the_limit():
    lines = suspensions.report(took_s(suspend=0.2, resume=0.5, bare=0.2), {"order": 0.05, "actuated": 0.3})
    assert lines[1] == "suspend, from the acknowledgement: 4 times, p50 0.200 s, p99 0.685 s"
    assert "step actuated, until the ledger has the CPU: mean 0.300 s" in lines
    assert lines[-2].startswith("suspend, from the order: median 0.250 s, ratio 1.25 to the bare resize, within")
    assert lines[-1].endswith("ratio 2.50 to the bare resize, ABOVE the limit of 0.400 s (1.5 x bare + 0.1 s)")


def test_only_steps_since_the_start_count():
    before = {"order": (10.0, 3.0), "grow": (1.0, 1.0)}
    after = {"order": (14.0, 5.0), "grow": (1.0, 1.0), "shrink": (2.0, 1.0)}
    assert suspensions.means_s(before, after) == {"order": 0.5, "shrink": 0.5}


def test_steps_are_read_from_the_leaders_metrics():
    text = "".join(
        f'boathouse_suspension_step_duration_seconds_{what}{{step="order"}} {value}\n'
        for what, value in (("bucket", 1), ("count", 4.0), ("sum", 0.5))
    )
    assert suspensions.read_steps(text) == {"order": (4.0, 0.5)}

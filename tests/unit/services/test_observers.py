"""Observers of a profile that raise errors."""

from boathouse.services import observers
from boathouse_policies import framework, model

TICK = model.Tick(now_s=0.0)


class Failing(framework.Observer):
    """Raises for the first `failures` events, and counts the events that it receives."""

    def __init__(self, failures):
        self.failures, self.received = failures, 0

    def observe(self, _event):
        self.received += 1
        if self.received <= self.failures:
            raise ValueError("an event that it does not understand")


class Other(Failing):
    """Another observer of the same profile."""


def publish(count, *, scrape, to):
    guarded = observers.GuardedObservers(to, scrape.gauges)
    for _ in range(count):
        guarded.observe(TICK)


def test_an_observer_that_raises_does_not_keep_events_from_the_others(scrape):
    failing, other = Failing(2), Other(0)
    publish(4, scrape=scrape, to=(failing, other))
    assert (failing.received, other.received) == (4, 4)


def test_an_observer_that_raised_often_receives_the_next_event_all_the_same(scrape):
    failing = Failing(50)
    publish(51, scrape=scrape, to=(failing,))
    assert failing.received == 51


def test_the_more_often_an_observer_raises_the_less_often_it_is_logged(scrape, monkeypatch):
    logged = []
    monkeypatch.setattr(observers._log, "exception", lambda *args, **_: logged.append(args))
    publish(51, scrape=scrape, to=(Failing(50),))
    assert len(logged) == 6  # the first, second, fourth ... thirty-second failure


def test_the_failures_of_each_observer_are_counted(scrape):
    publish(4, scrape=scrape, to=(Failing(3), Other(0)))
    assert [scrape.value("observer_failures_total", observer=name) for name in ("Failing", "Other")] == [3, 0]


def test_the_shortest_interval_that_an_observer_requests_is_that_of_all(scrape):
    slow, fast, none = Failing(0), Other(0), Failing(0)
    slow.report_every_s, fast.report_every_s, slow.measure_every_s = 10.0, 5.0, 15.0
    guarded = observers.GuardedObservers((slow, fast, none), scrape.gauges)
    assert (guarded.report_every_s, guarded.measure_every_s) == (5.0, 15.0)


def test_no_interval_is_requested_if_no_observer_requests_one(scrape):
    guarded = observers.GuardedObservers((Failing(0),), scrape.gauges)
    assert (guarded.report_every_s, guarded.measure_every_s) == (0.0, 0.0)

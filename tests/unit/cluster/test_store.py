"""What an informer's store believes, and what it ignores."""

from __future__ import annotations

from hypothesis import given, strategies as st

from boathouse.cluster import store, wire
from tests.unit.cluster.builders import pod, store_of, summaries


def test_a_new_object_is_added_and_a_newer_state_modifies_it():
    known = store_of()
    assert summaries(*known.put(pod("a", 11))) == ["Added a"]
    assert summaries(*known.put(pod("a", 12, phase="Running"))) == ["Modified a"]
    assert known.objects["demo/a"].status.phase == "Running"


def test_an_older_state_of_a_known_object_is_ignored():
    known = store_of(pod("a", 9))
    known.put(pod("a", 15))
    assert known.put(pod("a", 12)) == ()
    assert known.objects["demo/a"].metadata.resource_version == "15"


def test_a_repeated_event_is_no_change():
    known = store_of()
    known.put(pod("a", 11))
    assert known.put(pod("a", 11)) == ()


def test_a_deletion_carries_what_was_known_and_what_came_last():
    known = store_of(pod("a", 9))
    (deleted,) = known.remove(pod("a", 12, phase="Succeeded"))
    assert isinstance(deleted, store.Deleted)
    assert (deleted.old.status.phase, deleted.final.status.phase) == ("Pending", "Succeeded")
    assert known.objects == {}


def test_a_stale_event_does_not_raise_a_deleted_object_from_the_dead():
    known = store_of(pod("a", 9))
    known.remove(pod("a", 14))
    assert known.put(pod("a", 12)) == ()
    assert known.objects == {}


def test_a_stale_deletion_does_not_remove_the_object_that_took_the_name():
    known = store_of(pod("a", 9))
    known.put(pod("a", 20, uid="u2"))
    assert known.remove(pod("a", 14)) == ()
    assert known.objects["demo/a"].metadata.uid == "u2"


def test_an_object_of_another_uid_is_a_deletion_and_an_addition():
    known = store_of(pod("a", 9))
    deleted, added = known.put(pod("a", 12, uid="u2"))
    assert summaries(deleted, added) == ["Deleted a", "Added a"]
    assert (deleted.old.metadata.uid, added.new.metadata.uid) == ("u1", "u2")


def test_what_a_relist_does_not_show_is_deleted():
    known = store_of(pod("a", 5), pod("b", 6))
    listing = store.Listing(known, 20)
    assert summaries(*listing.page([pod("a", 5)])) == []
    assert summaries(*listing.finish()) == ["Deleted b"]


def test_a_list_that_breaks_off_half_way_deletes_nothing():
    known = store_of(pod("a", 5), pod("b", 6))
    assert summaries(*store.Listing(known, 20).page([pod("a", 18)])) == ["Modified a"]
    assert known.objects.keys() == {"demo/a", "demo/b"}


def test_an_event_from_before_the_list_is_ignored_even_for_an_object_the_list_lacks():
    known = store_of(revision=30)
    assert known.put(pod("a", 25)) == ()


def test_events_out_of_order_across_objects_all_count():
    known = store_of()
    assert summaries(*known.put(pod("a", 13)), *known.put(pod("b", 12))) == ["Added a", "Added b"]
    assert known.revision == 13


def test_a_bookmark_moves_the_start_of_the_next_watch_and_makes_older_events_stale():
    known = store_of()
    known.bookmark(50)
    assert known.revision == 50
    assert known.put(pod("a", 40)) == ()


def test_after_a_bookmark_nothing_is_kept_of_what_was_deleted_before_it():
    known = store_of(pod("a", 5), pod("b", 6))
    known.remove(pod("a", 8))
    known.bookmark(9)
    assert not known._gone


def test_after_a_restored_backup_the_list_is_believed():
    known = store_of(pod("a", 90), pod("b", 95), revision=100)
    listing = store.Listing(known, 40)
    assert summaries(*listing.page([pod("a", 30)]), *listing.finish()) == ["Modified a", "Deleted b"]
    assert summaries(*known.put(pod("c", 41))) == ["Added c"]


def test_differences_name_what_is_missing_a_ghost_or_outdated():
    known = store_of(pod("ghost", 5), pod("old", 6), pod("same", 7))
    found = known.differences({"demo/missing": ("u1", 8), "demo/old": ("u1", 9), "demo/same": ("u1", 7)}, 10)
    ghost, old = ("demo/ghost", ("u1", 5), False), ("demo/old", ("u1", 6), True)
    assert found == {("demo/missing", None, True), ghost, old}


def test_what_changed_after_the_list_is_no_difference():
    known = store_of(pod("deleted", 5), pod("changed", 6))
    known.put(pod("changed", 21))
    known.put(pod("new", 22))
    known.remove(pod("deleted", 23))
    assert not known.differences({"demo/deleted": ("u1", 5), "demo/changed": ("u1", 6)}, 20)


class Truth:
    """A cluster of a few names, and the events that lead to its state."""

    def __init__(self) -> None:
        self.revision, self.pods, self.events = 0, {}, []

    def step(self, name: str, action: str) -> None:
        self.revision += 1
        old = self.pods.get(name)
        if action == "delete":
            if old:
                self.events.append(("DELETED", pod(name, self.revision, uid=old.metadata.uid)))
                del self.pods[name]
            return
        uid = old.metadata.uid if old and action == "change" else f"u{self.revision}"
        if old and action == "replace":
            self.events.append(("DELETED", pod(name, self.revision, uid=old.metadata.uid)))
            self.revision += 1
        self.pods[name] = pod(name, self.revision, uid=uid)
        self.events.append(("MODIFIED" if old else "ADDED", self.pods[name]))


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["change", "replace", "delete"])), max_size=30)


@given(steps=STEPS, start=st.integers(0, 30), replays=st.lists(st.integers(0, 60), max_size=20))
def test_whatever_is_replayed_the_store_ends_as_the_cluster(steps, start, replays):
    truth = Truth()
    known: store.Store[wire.PodView] = store.Store()
    for number, (name, action) in enumerate(steps):
        if number == start:
            list_all(known, truth)
        truth.step(name, action)
    for position, event in enumerate(truth.events):
        apply(known, event)
        for replay in replays:
            apply(known, truth.events[replay % (position + 1)])
    assert states(known.objects.values()) == states(truth.pods.values())


def list_all(known, truth):
    listing = store.Listing(known, truth.revision)
    list(listing.page(truth.pods.values()))
    list(listing.finish())


def apply(known, event):
    kind, view = event
    return known.remove(view) if kind == "DELETED" else known.put(view)


def states(pods):
    return {(p.metadata.key, p.metadata.uid, p.metadata.resource_version) for p in pods}

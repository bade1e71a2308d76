"""A queue shared between namespaces: each gets its turn, and none all workers."""

from boathouse import fair


def filled(workers: int, *, slow_start: int | None = None, **items: int) -> fair.FairQueue[int]:
    queue: fair.FairQueue[int] = fair.FairQueue(workers, slow_start=slow_start)
    for namespace, count in items.items():
        for item in range(count):
            queue.put(namespace, item)
    return queue


def taken(queue: fair.FairQueue[int]) -> list[tuple[str, int]]:
    return list(iter(queue.take, None))


def test_namespaces_take_turns_and_keep_their_own_order():
    assert taken(filled(32, a=3, b=2)) == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2)]


def test_one_namespace_alone_leaves_workers_to_others():
    queue = filled(32, a=100)
    assert len(taken(queue)) == 24
    queue.put("b", 0)
    assert taken(queue) == [("b", 0)]


def test_several_namespaces_together_leave_some_too():
    queue = filled(32, a=100)
    taken(queue)
    for item in range(100):
        queue.put("b", item)
    assert len(taken(queue)) == 6
    queue.put("c", 0)
    assert taken(queue) == [("c", 0)]


def test_never_are_more_in_flight_than_there_are_workers():
    queue = filled(4, **{f"n{i}": 3 for i in range(10)})
    assert len(taken(queue)) == queue.in_flight == 4


def test_a_queue_with_one_worker_works():
    queue = filled(1, a=2)
    assert taken(queue) == [("a", 0)]
    queue.done("a")
    assert taken(queue) == [("a", 1)]


def test_a_slow_start_lets_two_more_begin_for_each_success():
    queue = filled(32, slow_start=1, a=100)
    assert len(taken(queue)) == 1
    queue.done("a", succeeded=True)
    assert len(taken(queue)) == 2


def test_a_refusal_restarts_the_slow_start():
    queue = filled(32, slow_start=1, a=100)
    for _ in range(8):
        taken(queue)
        queue.done("a", succeeded=True)
    running = len(taken(queue)) + queue.in_flight
    for _ in range(running):
        if queue.in_flight:
            queue.done("a", succeeded=False)
    assert len(taken(queue)) == 1


def test_nothing_is_kept_of_a_namespace_that_is_done():
    queue = filled(2, a=1)
    taken(queue)
    queue.done("a", succeeded=True)
    assert (len(queue), queue.in_flight, queue._lanes, dict(queue._turns)) == (0, 0, {}, {})

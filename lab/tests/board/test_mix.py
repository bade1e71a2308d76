"""The mix of the board; that it has the load it states is in `tests/unit/benchmarks/test_live_mix.py`."""

import pytest

from boathouse_lab.board import mix


def test_a_seed_gives_the_same_mix_again():
    shape = mix.Shape(jobs=6, applications=2)
    assert mix.draw(1, shape) == mix.draw(1, shape) != mix.draw(2, shape)


def test_spark_alone_uses_the_whole_load():
    shape = mix.Shape(jobs=0, applications=5, load=0.6)
    used = sum(one.seconds * one.memory_mib for one in mix.draw(1, shape).applications)
    assert used / shape.memory_mb_s == pytest.approx(0.6)

import random

import pytest
from hypothesis import given, strategies as st

from boathouse_task import key_fields, mapoutput
from boathouse_task.contract import Partitioner
from boathouse_task.errors import TaskError
from boathouse_task.key_fields import KeySpec
from boathouse_task.mapoutput import Prefixer
from tests.builders.tasks import partition_of

# By Java: 31-polynomial over the UTF-8 bytes, starting with 1, as WritableComparator.hashBytes; and String.hashCode.
HADOOP_HASHES = {
    "": (1, 0),
    "a": (128, 97),
    "the": (144592, 114801),
    "hello": (127791473, 99162322),
    "Boathouse": (262989535, 459503040),
    "日本語": (1243476185, 25921943),
    "key with space": (1169640398, -337911411),
}


def key_field(options: str, separator: str = ".") -> Partitioner:
    return Partitioner(type="KeyFieldBasedPartitioner", options=options, key_field_separator=separator)


@pytest.mark.parametrize("key", HADOOP_HASHES)
def test_a_key_hashes_as_hadoops_text_does(key):
    expected, _ = HADOOP_HASHES[key]
    assert list(key_fields.java_hashes([key.encode()], seed=1)) == [expected % 2**32]
    assert partition_of(Partitioner(), key.encode(), 7) == (expected & 0x7FFFFFFF) % 7


@pytest.mark.parametrize("key", HADOOP_HASHES)
def test_key_fields_without_options_hash_as_javas_string_does(key):
    _, expected = HADOOP_HASHES[key]
    assert partition_of(key_field(""), key.encode(), 7) == (expected & 0x7FFFFFFF) % 7


def test_a_hash_with_bytes_above_127_takes_them_as_negative():
    assert key_fields.java_hash(b"\xff", 1) == 30
    assert list(key_fields.java_hashes([b"\xff", b"a"], seed=1)) == [30, 128]


@given(st.lists(st.binary(max_size=300), max_size=50), st.sampled_from([0, 1]))
def test_hashing_many_keys_at_once_equals_hashing_each(keys, seed):
    assert list(key_fields.java_hashes(keys, seed=seed)) == [key_fields.java_hash(key, seed) for key in keys]


@pytest.mark.parametrize(
    ("options", "same", "other"),
    [
        pytest.param("-k1,2", b"a.b.x", b"a.c.x", id="two fields with what is between"),
        pytest.param("-k2", b"q.b.x", b"a.b.y", id="from a field to the end"),
        pytest.param("-k1.2,1.3", b"xbcx.z", b"xbdx.z", id="characters within a field"),
        pytest.param("-k 1,1 -k3,3", b"a.q.x", b"a.q.z", id="several options"),
    ],
)
def test_only_the_named_fields_of_a_key_decide(options, same, other):
    partitioner, reduces = key_field(options), 1_000_003
    twin = {b"a.b.x": b"a.b.y", b"q.b.x": b"r.b.x", b"xbcx.z": b"ybcy.q", b"a.q.x": b"a.r.x"}[same]
    assert partition_of(partitioner, same, reduces) == partition_of(partitioner, twin, reduces)
    assert partition_of(partitioner, same, reduces) != partition_of(partitioner, other, reduces)


def test_a_field_that_a_key_does_not_have_gives_partition_0():
    assert partition_of(key_field("-k4,4"), b"a.b", 97) == 0


def test_key_options_are_read_as_sorts():
    assert key_fields.parse("-k2.3,4.5nr", "spec.partitioner") == (
        KeySpec(begin_field=2, begin_char=3, end_field=4, end_char=5, numeric=True, reverse=True),
    )


@pytest.mark.parametrize("options", ["-k", "-kx", "-k0,1", "k1", "-k1,x", "-q"])
def test_options_that_are_not_hadoops_are_refused(options):
    with pytest.raises(TaskError, match=r"InvalidSpec: spec.partitioner"):
        key_fields.chooser(key_field(options), 2)


def test_an_unknown_partitioner_is_refused():
    with pytest.raises(TaskError, match=r"neither HashPartitioner nor"):
        Prefixer(Partitioner(type="MyPartitioner"), 2)


@given(st.integers(1, 20_000))
def test_prefixes_have_one_width_and_sort_in_the_order_of_partitions(reduces):
    width = key_fields.prefix_width(reduces)
    prefixes = [key_fields.prefix(number, width) for number in sorted({0, reduces // 2, reduces - 1})]
    assert prefixes == sorted(prefixes)
    assert len(set(prefixes)) == len({0, reduces // 2, reduces - 1})
    assert {len(prefix) for prefix in prefixes} == {width}


LINES = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), min_size=1, max_size=30)


@given(LINES, st.integers(1, 200))
def test_every_line_gets_its_tab_and_its_keys_partition(lines, reduces):
    block = b"".join(line + b"\n" for line in lines)
    width = key_fields.prefix_width(reduces)
    expected = [
        key_fields.prefix(partition_of(Partitioner(), line.partition(b"\t")[0], reduces), width)
        + (line if b"\t" in line else line + b"\t")
        for line in lines
    ]
    assert Prefixer(Partitioner(), reduces)(block) == b"".join(line + b"\n" for line in expected)


def test_keys_that_repeat_are_remembered_without_changing_the_result():
    block = b"".join(b"key%d\tv\n" % (number % 7) for number in range(1000))
    prefixer = Prefixer(Partitioner(), 5)
    assert prefixer(block) == prefixer(block) == Prefixer(Partitioner(), 5)(block)


def test_more_keys_than_are_remembered_are_still_right(monkeypatch):
    monkeypatch.setattr(mapoutput, "_CACHE_KEYS", 10)
    generator = random.Random(1)
    prefixer, plain = Prefixer(Partitioner(), 5), Prefixer(Partitioner(), 5)
    for _ in range(20):
        block = b"".join(b"%d\tv\n" % generator.randrange(9) for _ in range(100))
        assert prefixer(block) == b"".join(plain(line + b"\n") for line in block[:-1].split(b"\n"))


def test_a_key_of_two_fields_decides_by_both():
    partitioner = Partitioner(num_key_fields=2)
    one, two, three = (Prefixer(partitioner, 9000)(line) for line in (b"a\tb\t1\n", b"a\tb\t2\n", b"a\tc\t1\n"))
    assert one[:3] == two[:3] != three[:3]

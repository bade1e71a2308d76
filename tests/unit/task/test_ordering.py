"""Keys by fields: what a key is, where it goes, and in which order it comes."""

import decimal
import functools

import pytest
from hypothesis import given, settings, strategies as st

from boathouse_task import key_fields, mapoutput
from boathouse_task.contract import Partitioner
from boathouse_task.errors import TaskError

FIELDS = st.lists(
    st.sampled_from([b"", b"a", b"b", b"ab", b"\xff", b"10", b"9", b"-3", b"007.50", b"-0", b"x1"]), max_size=4
)
KEYS = FIELDS.map(b".".join)
NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda value: format(value, "f").encode())


def sort_key(options, key):
    return key_fields.Ordering(Partitioner(comparator_options=options, key_field_separator=".")).sort_key(key)


def compared(one, other):
    return (one > other) - (one < other)


def reference(first, last, *, numeric, reverse):
    """Hadoop's comparison of fields `first` to `last`, written down without any of the tricks."""

    def field(key):
        parts = key.split(b".")
        if len(parts) < first or len(b".".join(parts[: first - 1])) + (first > 1) >= len(key):
            return None  # KeyFieldHelper: a field that begins behind the key's end is not there
        return b".".join(parts[first - 1 : last])

    def number(text):
        found = b""
        for char in text:
            if chr(char) not in "0123456789." and not (chr(char) == "-" and not found):
                break
            found += bytes([char])
        head, _, tail = found.partition(b".")
        digits = head.lstrip(b"-") + tail.split(b".")[0]
        value = decimal.Decimal(int(digits or b"0")).scaleb(-len(tail.split(b".")[0]))
        return -value if head.startswith(b"-") else value

    def compare(one, other):
        a, b = field(one), field(other)
        if a is None or b is None:
            result = (a is not None) - (b is not None)
        else:
            result = compared(number(a), number(b)) if numeric else compared(a, b)
        return -result if reverse else result

    return compare


@settings(max_examples=400)
@given(
    fields=st.sampled_from([(1, 1), (2, 2), (2, 3), (3, 4)]),
    numeric=st.booleans(),
    reverse=st.booleans(),
    one=KEYS,
    other=KEYS,
)
def test_sort_keys_compare_as_the_fields_do(fields, numeric, reverse, one, other):
    first, last = fields
    options = f"-k{first},{last}" + "n" * numeric + "r" * reverse
    expected = reference(first, last, numeric=numeric, reverse=reverse)(one, other)
    assert compared(sort_key(options, one), sort_key(options, other)) == expected


@given(one=NUMBERS, other=NUMBERS)
def test_numbers_compare_by_their_value(one, other):
    expected = compared(decimal.Decimal(one.decode()), decimal.Decimal(other.decode()))
    ordered = key_fields.Ordering(Partitioner(comparator_options="-n", key_field_separator="\t"))
    assert compared(ordered.sort_key(one), ordered.sort_key(other)) == expected


@given(one=KEYS, other=KEYS)
def test_a_second_field_decides_where_the_first_is_equal(one, other):
    first, second = reference(2, 2, numeric=True, reverse=True), reference(1, 1, numeric=False, reverse=False)
    expected = first(one, other) or second(one, other)
    assert compared(sort_key("-k2,2nr -k1,1", one), sort_key("-k2,2nr -k1,1", other)) == expected


@given(st.lists(KEYS, max_size=20))
def test_whole_lines_sorted_as_bytes_come_in_the_keys_order(keys):
    prefixer = mapoutput.Prefixer(Partitioner(comparator_options="-k1,1nr", key_field_separator="."), 1)
    lines = sorted(prefixer(key + b"\tvalue\n") for key in keys)
    stripped = b"".join(key_fields.strip(lines)).splitlines()
    compare = reference(1, 1, numeric=True, reverse=True)
    ordered = sorted(keys, key=functools.cmp_to_key(lambda a, b: compare(a, b) or compared(a + b"\t", b + b"\t")))
    assert [line.partition(b"\t")[0] for line in stripped] == ordered


@given(KEYS)
def test_a_sort_key_ends_with_its_only_tab_and_breaks_no_line(key):
    made = sort_key("-k1,2r -k3n", key)
    assert made.endswith(b"\t")
    assert b"\n" not in made
    assert b"\t" not in made[:-1]


@pytest.mark.parametrize("options", ["k1", "-k0", "-k1.0", "-k1x", "-x", "-", "-k", "-rn", "-nn"])
def test_options_that_hadoop_does_not_know_are_refused(options):
    with pytest.raises(TaskError, match=r"InvalidSpec: spec\.comparator"):
        key_fields.parse(options, "spec.comparator")


@pytest.mark.parametrize(
    ("line", "separator", "fields", "expected"),
    [
        (b"a.b.c.d", ".", 2, b"a.b\tc.d"),
        (b"a.b", ".", 2, b"a.b\t"),
        (b"a", ".", 1, b"a\t"),
        (b"a\tb.c", ".", 1, b"a\tb\tc"),
        (b"a\tb\tc", "\t", 2, b"a\tb\tc"),
        (b"a::b::c", "::", 1, b"a\tb::c"),
        (b"", ".", 2, b"\t"),
    ],
)
def test_the_separator_behind_the_key_becomes_a_tab(line, separator, fields, expected):
    partitioner = Partitioner(field_separator=separator, num_key_fields=fields)
    assert mapoutput.Prefixer(partitioner, 1)(line + b"\n") == expected + b"\n"
    large = line.replace(b"d", b"d" * (2 << 20))
    assert mapoutput.Prefixer(partitioner, 1)(large + b"\n") == expected.replace(b"d", b"d" * (2 << 20)) + b"\n"


@pytest.mark.parametrize(
    ("line", "is_combined", "sortable", "read"),
    [
        (b"a\tb", False, b"a\tb", b"a\tb\t"),
        (b"a", False, b"a", b"a\t"),
        (b"a\t", False, b"a\t", b"a\t\t"),
        (b"", False, b"", b"\t"),
        (b"a\tb\tc", False, b"a\tb\tc", b"a\tb\tc"),
        (b"a\tb\t", True, b"a\tb\t", b"a\tb\t"),
        (b"a\t", True, b"a", b"a\t"),
        (b"a\t\t", True, b"a\t\t", b"a\t\t"),
    ],
)
def test_a_key_that_lacks_fields_gets_its_tab_when_it_is_read(line, is_combined, sortable, read):
    partitioner = Partitioner(num_key_fields=2)
    prefixer = mapoutput.Prefixer(partitioner, 1, is_combined=is_combined)
    assert prefixer(line + b"\n") == sortable + b"\n"
    assert prefixer._large(line + b"\n") == sortable + b"\n"
    assert b"".join(key_fields.separated([sortable + b"\n"], b"\t", 2, b"\t")) == read + b"\n"


@given(keys=st.lists(KEYS, min_size=1), reduces=st.integers(1, 7), field=st.integers(1, 4))
def test_the_field_partitioner_uses_its_field_only(keys, reduces, field):
    """The plain reference: Java's polynomial over the signed bytes of the field of the key as a text, from 0."""
    partitioner = Partitioner(type="KeyFieldBasedPartitioner", options=f"-k{field},{field}", key_field_separator=".")

    def expected(key):
        parts = key.decode("utf-8", "replace").encode().split(b".")
        value = 0
        for byte in parts[field - 1] if len(parts) >= field else b"":
            value = (31 * value + byte - 256 * (byte > 127)) % 2**32
        return (value & 0x7FFFFFFF) % reduces

    assert key_fields.chooser(partitioner, reduces)(keys) == [expected(key) for key in keys]


def test_a_job_orders_by_number_in_reverse_and_its_combiner_sees_plain_lines(job_folder):
    rows = [(f"{name}.{number}", number) for number in range(40) for name in "ab"]
    job_folder.write_input("a", "".join(f"{key}\t1\n" for key, _ in rows).encode())
    partitioner = Partitioner(comparator_options="-k2,2nr -k1,1", key_field_separator=".")
    for buffer_bytes in (None, 400):
        job_folder.output = job_folder.folder / f"out-{buffer_bytes}"
        job_folder.run_job(
            ["cat"],
            combiner=["cat"],
            reducer=["cat"],
            partitioner=partitioner,
            buffer_bytes=buffer_bytes,
            split_max_bytes=200,
        )
        found = [line.split(b"\t")[0].decode() for line in b"".join(job_folder.parts()).splitlines()]
        assert found == [key for key, _ in sorted(rows, key=lambda row: (-row[1], row[0]))]


def test_equal_keys_stay_together_where_the_comparator_sees_no_difference(job_folder):
    job_folder.write_input("a", b"".join(b"x.%d\t1\n" % (number % 5) for number in range(100)))
    partitioner = Partitioner(comparator_options="-k1,1", key_field_separator=".")
    job_folder.run_job(["cat"], reducer=["uniq", "-c"], partitioner=partitioner, buffer_bytes=300)
    assert [line.split() for line in b"".join(job_folder.parts()).splitlines()] == [
        [b"20", b"x.%d" % number, b"1"] for number in range(5)
    ]


def test_an_option_may_be_apart_from_its_fields():
    assert sort_key("-k 2,2n", b"a.10") == sort_key("-k2,2n", b"a.10") != sort_key("-k1,1n", b"a.10")

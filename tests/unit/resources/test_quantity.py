"""Quantities as Kubernetes reads them."""

import pytest
from hypothesis import given, strategies as st

from boathouse.resources import quantity


@pytest.mark.parametrize(
    ("text", "milli"),
    [("1", 1000), (2, 2000), ("500m", 500), ("0.5", 500), ("1e1", 10_000), ("100u", 1), (".1", 100), ("2k", 2_000_000)],
)
def test_a_cpu_quantity_is_read_in_thousandths_and_rounded_up(text, milli):
    assert quantity.milli(text) == milli


@pytest.mark.parametrize(
    ("text", "size"), [("64Mi", 64 << 20), ("1G", 10**9), ("1.5Gi", 3 << 29), ("1", 1), ("128974848000m", 128974848)]
)
def test_a_memory_quantity_is_read_in_bytes(text, size):
    assert quantity.units(text) == size


@pytest.mark.parametrize("text", ["", "1 Gi", "Mi", "1GiB", "1,5", "0x10", "1e", "--1"])
def test_what_is_not_a_quantity_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="64Mi"):
        quantity.parse(text)


@given(st.integers(0, 2**62))
def test_a_written_memory_quantity_reads_back_exactly(size):
    assert quantity.units(quantity.format_bytes(size)) == size


@given(st.integers(0, 10**9))
def test_a_written_cpu_quantity_reads_back_exactly(milli):
    assert quantity.milli(quantity.format_milli(milli)) == milli


@pytest.mark.parametrize(
    "text", ["1e999999999", "9" * 5000, "1e" + "9" * 6000, "9223372036854775807Ei", "1" + "0" * 99]
)
def test_a_quantity_saturates_at_the_largest_of_kubernetes(text):
    assert quantity.parse(text) == quantity.LARGEST
    assert quantity.parse(f"-{text}") == -quantity.LARGEST


@pytest.mark.parametrize("text", ["1e-999999999", "0." + "0" * 5000 + "1", "1e-" + "9" * 6000])
def test_the_smallest_amount_is_still_an_amount(text):
    assert quantity.units(text) == 1


def test_zero_stays_zero_whatever_its_exponent():
    assert quantity.units("0e99999999999") == 0


def test_a_long_text_that_is_no_quantity_is_refused_at_once_and_shown_in_part():
    with pytest.raises(ValueError, match="64Mi") as refused:
        quantity.parse("1" * 1_000_000 + "x")
    assert len(str(refused.value)) < 200

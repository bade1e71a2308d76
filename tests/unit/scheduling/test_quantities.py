"""Quantities are read as the API server reads them."""

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from boathouse.scheduling.pods import requests


@pytest.mark.parametrize(
    ("text", "expected_milli"),
    [
        ("1", 1000),
        ("500m", 500),
        ("0.5", 500),
        (".5", 500),
        ("1.", 1000),
        ("0.0001", 1),
        ("1u", 1),
        ("100n", 1),
        ("1e3", 1_000_000),
        ("1E-3", 1),
        ("2k", 2_000_000),
        ("+3", 3000),
        (2, 2000),
        (0.25, 250),
        ("0", 0),
    ],
)
def test_cpu_is_rounded_up_to_the_next_thousandth(text, expected_milli):
    assert requests.cpu_milli(text) == expected_milli


@pytest.mark.parametrize(
    ("text", "expected_bytes"),
    [
        ("64Mi", 64 << 20),
        ("1.5Gi", 3 << 29),
        ("1k", 1000),
        ("1Ki", 1024),
        ("2M", 2_000_000),
        ("3Ti", 3 << 40),
        ("1Pi", 1 << 50),
        ("1Ei", 1 << 60),
        ("1E", 10**18),
        ("1P", 10**15),
        ("1T", 10**12),
        ("1G", 10**9),
        ("12e6", 12_000_000),
        ("1E3", 1000),
        ("100m", 1),
        ("128974848000m", 128974848),
        ("0.1Ki", 103),
    ],
)
def test_memory_is_rounded_up_to_the_next_byte(text, expected_bytes):
    assert requests.size_bytes(text) == expected_bytes


@pytest.mark.parametrize("text", ["", "m", ".", "1 Gi", "1GiB", "1mi", "1K", "0x10", "1e", "NaN", "--1"])
def test_what_is_no_quantity_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="such as 500m"):
        requests.nano(text)


@given(st.decimals(0, 10**6, allow_nan=False, places=4), st.sampled_from(["m", "", "k", "M", "Ki", "Mi", "Gi"]))
def test_parsing_agrees_with_exact_fractions(number, suffix):
    scale = {"m": Fraction(1, 1000), "": 1, "k": 10**3, "M": 10**6, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}[suffix]
    exact = Fraction(number) * scale
    assert 0 <= Fraction(requests.nano(f"{number}{suffix}"), 10**9) - exact < Fraction(1, 10**9)

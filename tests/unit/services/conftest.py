"""A job with the fields that every job needs, and metrics as a scraper reads them, as fixtures."""

import pytest

from tests.builders import mrjobs, scrapes


@pytest.fixture
def job():
    return mrjobs.job()


@pytest.fixture
def scrape():
    return scrapes.Scrape()

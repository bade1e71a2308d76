"""The catalogues of claims: what each claim's sentence is, and that ids are unique."""

import itertools

import pytest

from boathouse_lab.reproduce import sources, studies
from boathouse_lab.reproduce.claim import Kind
from tests.builders import reproductions


def parsed(**content):
    return sources.parsed("toy", {"text": "toy.txt", **content})


def test_a_claim_has_its_sentence_its_line_and_its_class():
    sentence = {"line": 7, "words": "our toy is faster", "figure": ["faster"], "derived": ["much-faster"]}
    found = parsed(sentence=[sentence], calibrated=["faster"]).sources
    assert found["toy-faster"] == sources.Source(
        sentence="our toy is faster", line=7, kind=Kind.FIGURE, calibrated=True
    )
    assert (found["toy-much-faster"].kind, found["toy-much-faster"].calibrated) == (Kind.DERIVED, False)


def test_what_is_not_in_the_paper_has_no_sentence():
    (found,) = parsed(**{"not-in-the-paper": ["red"]}).sources.values()
    assert (found.sentence, found.line, found.kind) == ("", None, Kind.NOT_IN_THE_PAPER)


def test_an_id_that_is_listed_twice_is_refused():
    with pytest.raises(ValueError, match="lists faster twice"):
        parsed(sentence=[{"line": line, "words": "faster", "figure": ["faster"]} for line in (7, 8)])


def test_what_is_calibrated_must_be_listed():
    with pytest.raises(ValueError, match="without a sentence: slower"):
        parsed(calibrated=["slower"])


def test_what_is_explained_must_be_listed():
    with pytest.raises(ValueError, match="without a sentence: slower"):
        parsed(explanation=[{"text": "Disks.", "rows": ["slower"]}])


def test_a_catalogue_says_why_a_claim_fails_and_what_to_know_in_any_case():
    sentence = {"line": 7, "words": "our toy is faster", "figure": ["faster"]}
    texts = [{"text": "Disks.", "rows": ["faster"]}, {"text": "One seed.", "always": ["faster"]}]
    source = parsed(sentence=[sentence], explanation=texts).sources["toy-faster"]
    said = {"explanation": source.explanation, "note": source.note}
    assert reproductions.claim("ge", 0.5, value=0.4, **said).why == "One seed.; Disks."
    assert reproductions.claim("ge", 0.5, value=0.6, **said).why == "One seed."


@pytest.mark.parametrize("study", studies.names())
def test_every_claim_of_a_catalogue_can_be_made(study):
    for name in sources.catalogue(study).sources:
        reproductions.claim(**sources.sourced(study, name.removeprefix(f"{study}-")))


def test_ids_are_unique_over_all_studies():
    found = list(itertools.chain.from_iterable(sources.catalogue(name).sources for name in studies.names()))
    assert len(set(found)) == len(found) > 260


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "faster"},
        {"id": "toy-Faster"},
        {"sentence": ""},
        {"line": None},
        {"kind": Kind.NOT_IN_THE_PAPER},
    ],
)
def test_a_claim_without_its_source_is_refused(fields):
    with pytest.raises(ValueError, match=r"kebab case|a sentence and its line"):
        reproductions.claim(**fields)

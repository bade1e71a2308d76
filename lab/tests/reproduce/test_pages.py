"""The pages of docs/policies show what the stored runs found; nothing is simulated."""

import dataclasses
import json

import pytest

from boathouse_lab.reproduce import pages, sources, studies
from boathouse_lab.reproduce.claim import Assumption, Kind
from boathouse_lab.reproduce.stored import Stored, repeated
from boathouse_lab.reproduce.study import Form, Scale
from tests.builders import reproductions

RUNS = {run.study: run for run in pages.stored()}
PAGE = f"before\n{pages.BEGIN}stale\n{pages.END}\nafter\n"
SLOW = Assumption(name="disk", value=1.0, effect="none")


def stored_run(*claims) -> Stored:
    fields = {"study": "toy", "title": "A toy", "text": "toy.txt", "source": "a test", "seeds": 3}
    plain = [{**row.as_json(), "assumptions": []} for row in claims or (reproductions.claim(),)]
    return Stored(**fields, assumptions=(), rows=plain)


def test_every_study_has_a_stored_run():
    assert set(RUNS) == set(studies.names())


@pytest.mark.parametrize("study", RUNS)
def test_the_page_shows_the_stored_run(study):
    page = pages.page_of(study).read_text(encoding="utf-8")
    assert pages.written(page, RUNS[study]) == page, "run `make pages`"


@pytest.mark.parametrize("study", RUNS)
def test_the_stored_run_has_the_claims_of_the_catalogue_as_they_are(study):
    for row, (name, source) in zip(
        sorted(RUNS[study].rows, key=lambda row: row["id"]),
        sorted(sources.catalogue(study).sources.items()),
        strict=True,
    ):
        fields = dataclasses.asdict(source)
        said = (fields.pop("note"), "" if row["holds"] else fields.pop("explanation"))
        fields.pop("explanation", None)
        assert (row["id"], {key: row[key] for key in fields}) == (name, fields)
        assert row["reason"].endswith("; ".join(filter(None, said)))


@pytest.mark.parametrize("study", RUNS)
def test_no_two_rows_of_a_stored_run_have_one_text(study):
    assert not repeated(row["claim"] for row in RUNS[study].rows)


@pytest.mark.parametrize("study", RUNS)
def test_a_stored_run_is_of_the_full_form_and_written_as_the_command_writes_it(study):
    run = RUNS[study]
    assert "full form" in run.source
    assert (pages.FOLDER / "figures" / f"{study}.json").read_text(encoding="utf-8") == run.as_text()


def test_only_the_text_between_the_marks_is_replaced():
    page = pages.written(PAGE, stored_run())
    assert "| 1 | The toy is faster<br>“our toy is faster” (line 7)<br>`toy-faster` | figure |" in page
    assert "stale" not in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="no place for a table"):
        pages.written("nothing", stored_run())


def test_rows_that_hold_are_counted_by_class():
    calibrated = reproductions.claim(id="toy-cheap", claim="cheap", value=0.1, kind=Kind.DERIVED, calibrated=True)
    text = pages.table(stored_run(reproductions.claim(), calibrated))
    assert "1 of 2 rows hold (figure 1 of 1, derived 0 of 1)" in text
    assert "calibrated on 1 of them, of which 0 hold" in text


@pytest.mark.parametrize(
    ("fields", "cell"),
    [
        ({"value": 0.6, "interval": (0.5, 0.7), "unit": "%"}, "| at least 50 % | 60 % (50 % to 70 %) | yes |"),
        ({"value": 0.6, "interval": (0.6, 0.6)}, "| at least 0.5 | 0.6 | yes |"),
        ({"value": None}, "| at least 0.5 | – | no |"),
        ({"claim": "|y|"}, r"\|y\|"),
    ],
)
def test_a_cell_says_the_value_with_its_interval(fields, cell):
    assert cell in pages.table(stored_run(reproductions.claim(**fields)))


def test_a_run_lists_each_assumption_once(monkeypatch):
    monkeypatch.setattr("boathouse_lab.reproduce.stored.catalogue", lambda _: sources.Catalogue(text="", sources={}))
    claims = [
        reproductions.claim(assumptions=(SLOW,)),
        reproductions.claim(id="toy-red", claim="red", assumptions=(SLOW,)),
    ]
    run = Stored.of(reproductions.Toy(), Scale.of(Form.QUICK), claims)
    assert (len(run.assumptions), [row["assumptions"] for row in run.rows]) == (1, [[0], [0]])
    assert Stored.parsed(run.as_text()).as_text() == run.as_text()
    assert json.loads(run.as_text())["source"] == "boathouse reproduce toy, quick form"


@pytest.mark.parametrize("fields", [{"id": "toy-red"}, {"claim": "red"}])
def test_two_rows_with_one_id_or_one_text_are_refused(fields):
    with pytest.raises(ValueError, match="one id or one text"):
        Stored.of(reproductions.Toy(), Scale.of(Form.QUICK), [reproductions.claim(), reproductions.claim(**fields)])


def test_a_page_that_differs_from_its_figures_fails_the_check(monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "toy.json").write_text(stored_run().as_text())
    (tmp_path / "toy.md").write_text(PAGE)
    with pytest.raises(SystemExit, match="1"):
        pages.main(["--check"])
    pages.main([])
    pages.main(["--check"])
    assert pages.stale() == []


def test_a_study_is_run_in_full_and_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    monkeypatch.setattr(studies, "_STUDIES", {"toy": reproductions.Toy})
    monkeypatch.setattr("boathouse_lab.reproduce.stored.catalogue", lambda _: sources.Catalogue(text="", sources={}))
    (tmp_path / "figures").mkdir()
    (tmp_path / "toy.md").write_text(PAGE)
    pages.main(["--run", "toy", "--workers", "1"])
    assert [row["value"] for run in pages.stored() for row in run.rows] == [285.0]  # the squares of 10 seeds
    assert "full form, 10 seeds" in (tmp_path / "toy.md").read_text()

"""The options of `boathouse-task local`."""

import operator
import re
import tarfile

import pytest

from boathouse_task import __main__, contract, local
from boathouse_task.contract import InputFormatType

DEFAULTS = ["local", "--input", "/in", "--output", "/out", "--mapper", "cat", "--reducer", "cat"]


def spec(*options):
    return local.job_of(__main__._parser().parse_args([*DEFAULTS, *options]))


@pytest.mark.parametrize(
    ("option", "field", "value"),
    [
        ("--input-format=NLineInputFormat", "input_format.type", InputFormatType.N_LINE),
        ("--input-format=CombineTextInputFormat", "combine_files", True),
        ("--input-format=CombineTextInputFormat", "input_format.type", InputFormatType.TEXT),
        ("--record-delimiter=||", "input_format.record_delimiter", "||"),
        ("--record-delimiter=LF", "keeps_returns", True),
        ("--lines-per-map=7", "input_format.lines_per_map", 7),
        ("--key-value-separator=,", "input_format.key_value_separator", ","),
        ("--map-input-ignore-key", "input_format.ignore_key", True),
        ("--no-map-input-ignore-key", "input_format.ignore_key", False),
        ("--map-input-field-separator=|", "input_format.field_separator", "|"),
        ("--partitioner=KeyFieldBasedPartitioner", "partitioner.type", "KeyFieldBasedPartitioner"),
        ("--partitioner-options=-k1,2", "partitioner.options", "-k1,2"),
        ("--comparator-options=-k2,2nr", "partitioner.comparator_options", "-k2,2nr"),
        ("--key-field-separator=.", "partitioner.key_field_separator", "."),
        ("--map-output-field-separator=,", "partitioner.field_separator", ","),
        ("--key-fields=2", "partitioner.num_key_fields", 2),
        ("--reduce-input-field-separator=#", "reduce_fields.input_separator", "#"),
        ("--reduce-output-field-separator=,", "reduce_fields.output_separator", ","),
        ("--reduce-output-key-fields=3", "reduce_fields.num_output_key_fields", 3),
        ("--output-separator=,", "output_format.separator", ","),
        ("--key-only-output", "output_format.key_only", True),
        ("--lazy-output", "output_format.lazy", True),
        ("--output-compression=gzip", "output_compression", "gzip"),
        ("--ignore-exit-code", "is_exit_checked", False),
        ("--conf=my.name=a=b", "conf", {"my.name": "a=b"}),
        (
            "--archive=/w/words.zip#words",
            "archives",
            [contract.ArchiveSource(name="words", url="file:///w/words.zip", max_bytes=2**30)],
        ),
    ],
)
def test_an_option_is_a_field_of_the_job(option, field, value):
    read = operator.attrgetter(field)
    assert read(spec(option)) == value
    assert read(spec()) != value or field == "input_format.type"


def test_an_archive_without_a_name_is_named_like_its_file():
    (archive,) = spec("--archive=s3://bucket/words.zip").archives
    assert (archive.name, archive.url) == ("words.zip", "s3://bucket/words.zip")


def test_the_help_describes_every_option(capsys):
    with pytest.raises(SystemExit):
        __main__.main(["local", "--help"])
    text = capsys.readouterr().out
    options = [line.strip() for line in text.partition("\n\n")[2].splitlines() if line.startswith("  -")]
    assert len(options) > 30
    assert {"--record-delimiter TEXT", "--archive PATH[#NAME]", "--lazy-output"} <= {
        option.partition("   ")[0].rstrip() for option in options
    }


@pytest.mark.parametrize("said", ["hash", "TextInputFormat", "LF, CR and CRLF)", "64Mi)", "by bytes)"])
def test_the_help_says_what_holds_without_an_option(capsys, said):
    with pytest.raises(SystemExit):
        __main__.main(["local", "--help"])
    assert re.search(rf"[ (]default: {re.escape(said)} ", " ".join(capsys.readouterr().out.split()))


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--lines-per-map=0", "is not a number from 1"),
        ("--conf=name", "write KEY=VALUE"),
        ("--input-format=SequenceFileInputFormat", "invalid choice"),
    ],
)
def test_a_wrong_value_is_refused(option, complaint, capsys):
    with pytest.raises(SystemExit):
        spec(option)
    assert complaint in capsys.readouterr().err


def test_a_job_runs_with_archives_properties_and_formats(job_folder):
    job_folder.write_input("a", b"k,1\nl,2\n")
    words = job_folder.folder / "words"
    words.write_text("hello\n")
    with tarfile.open(job_folder.folder / "packed.tgz", "w:gz") as packed:
        packed.add(words, "list")
    options = ["--input", str(job_folder.input), "--output", str(job_folder.output), "--input-format"]
    options += ["KeyValueTextInputFormat", "--key-value-separator", ",", "--key-only-output", "--ignore-exit-code"]
    options += ["--archive", f"{job_folder.folder}/packed.tgz#dictionary", "--conf", "my.name=value"]
    mapper = "sh -c 'cat dictionary/list; echo $my_name; cat; exit 3'"
    assert __main__.main(["local", "--mapper", mapper, *options]) == contract.EXIT_SUCCEEDED
    assert job_folder.parts() == [b"hello\nvalue\nk\t1\nl\t2\n"]

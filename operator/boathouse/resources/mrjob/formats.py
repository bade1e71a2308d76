"""Fields of an MRJob for its input and output formats, and for the environment of its commands."""

from typing import Annotated, Literal

from pydantic import Field

from boathouse.resources import base
from boathouse.resources.mrjob.steps import Separator

MAX_CONF_BYTES = 16 * 1024
_ARCHIVES = r"[.](zip|jar|tar|tar[.]gz|tgz)$"


class Archive(base.Model):
    """An archive that is unpacked into a folder of the task's working folder, like Hadoop's -archives."""

    model_config = base.checked(
        base.rule("self.name != '.' && self.name != '..'", "an archive's name cannot be . or .."),
        base.rule(
            f"self.url.matches('{_ARCHIVES}')",
            "'archive ' + self.name + ': the url must end with .zip, .jar, .tar, .tar.gz or .tgz'",
        ),
    )
    name: base.Key = Field(description="Name of the folder, without slashes.")
    url: base.Url = Field(description="URL of the archive: .zip, .jar, .tar, .tar.gz or .tgz.")
    max_size: base.Quantity = Field(
        default="1Gi", description="Maximum total size of its files. It counts against ephemeral-storage."
    )


Conf = Annotated[
    dict[str, Annotated[str, Field(max_length=4096)]],
    Field(
        max_length=64,
        json_schema_extra=base.rules(
            base.rule(
                "self.all(key, key.size() > 0 && key.size() <= 256)",
                "a property's name has between 1 and 256 characters",
            ),
            base.rule(
                "!self.exists(key, key.matches('^(PATH$|LD[^A-Za-z0-9]|PYTHON|BOATHOUSE[^A-Za-z0-9])'))",
                "PATH, LD_*, PYTHON* and BOATHOUSE_* cannot be set by conf: set variables in spec.env",
            ),
            base.rule("!self.exists(key, self[key].contains('\\x00'))", "a value cannot contain a NUL character"),
            base.at_most_bytes("self.map(key, bytes(key + self[key]))", MAX_CONF_BYTES, "conf"),
        ),
    ),
]


class Formats(base.Model):
    """How the input is cut into records, what the mapper reads of them, and how the output is written."""

    input_format: Literal[
        "TextInputFormat", "CombineTextInputFormat", "NLineInputFormat", "KeyValueTextInputFormat"
    ] = Field(
        default="TextInputFormat",
        description="CombineTextInputFormat: a map reads several small files, up to splitMaxSize. NLineInputFormat: a "
        "map reads linesPerMap lines, each with its position before it. KeyValueTextInputFormat: the mapper reads the "
        "text before and after the first keyValueSeparator of a line.",
    )
    record_delimiter: str | None = base.optional(
        "Text that ends a record of the input, like textinputformat.record.delimiter. LF: only LF ends a "
        "line, of the input and of what commands write, and a byte order mark is kept. Absent: CR, LF and CRLF end a "
        "line.",
        min_length=1,
        max_length=64,
    )
    lines_per_map: int | None = base.optional("Like mapreduce.input.lineinputformat.linespermap. Absent: 1.", ge=1)
    key_value_separator: str | None = base.optional(
        "Character that ends the key of an input line, like "
        "mapreduce.input.keyvaluelinerecordreader.key.value.separator. Absent: TAB.",
        min_length=1,
        max_length=1,
        json_schema_extra=base.holds(
            r"self.matches('^[\\x01-\\x09\\x0b\\x0c\\x0e-\\x7f]$')",
            "the separator must be an ASCII character, not a line end",
        ),
    )
    map_input_ignore_key: bool | None = base.optional(
        "Whether the mapper reads values only, like stream.map.input.ignoreKey. False with "
        "TextInputFormat: each line follows its position in the file. Absent: true with TextInputFormat and "
        "CombineTextInputFormat only."
    )
    map_input_field_separator: Separator | None = base.optional(
        "Separates key and value of the lines that the mapper reads, like "
        "stream.map.input.field.separator. Absent: TAB."
    )
    output_separator: Separator | None = base.optional(
        "Separates key and value in output files, like mapreduce.output.textoutputformat.separator. A "
        "line without a value ends with it. Absent: TAB."
    )
    key_only_output: bool = Field(
        default=False,
        description="Writes lines as the command wrote them, without a TAB at the end of lines that have none, like "
        "stream.reduce.output=keyonlytext.",
    )
    lazy_output: bool = Field(
        default=False, description="Writes no output file without a line, like -lazyOutput (LazyOutputFormat)."
    )
    output_compression: Literal["gzip", "bzip2", "zstd", "deflate", "snappy"] | None = base.optional(
        "Compression of output files, named part-00000.gz, .bz2, .zst, .deflate or .snappy. Absent: none."
    )
    non_zero_exit_is_failure: bool = Field(
        default=True,
        description="False: an attempt does not fail if its command ends with another exit code than 0, or by a "
        "signal, like stream.non.zero.exit.is.failure.",
    )
    conf: Conf | None = base.optional(
        "Properties for the environment of the commands, like Hadoop's -D: the variable of my.name is "
        "my_name. They change nothing else."
    )
    archives: list[Archive] | None = base.optional(
        "Archives that are unpacked in the working folder of tasks.",
        max_length=16,
        json_schema_extra=base.map_list("name"),
    )


format_rules = (
    base.rule(
        "!has(self.linesPerMap) || self.inputFormat == 'NLineInputFormat'",
        "linesPerMap is for NLineInputFormat: set inputFormat, or remove it",
    ),
    base.rule(
        "!has(self.keyValueSeparator) || self.inputFormat == 'KeyValueTextInputFormat'",
        "keyValueSeparator is for KeyValueTextInputFormat: set inputFormat, or remove it",
    ),
    base.rule(
        "!has(self.recordDelimiter) || self.recordDelimiter == 'LF' || "
        "!(self.inputFormat in ['NLineInputFormat', 'KeyValueTextInputFormat'])",
        "NLineInputFormat and KeyValueTextInputFormat read lines: remove recordDelimiter, or set it to LF",
    ),
    base.rule(
        "!self.keyOnlyOutput || !has(self.outputSeparator)",
        "keyOnlyOutput writes no separator: remove it or outputSeparator",
    ),
    base.rule(
        "!has(self.archives) || !has(self.files) || "
        "self.archives.all(archive, self.files.all(file, file.name != archive.name))",
        "a file and an archive have the same name: rename one of them",
    ),
)

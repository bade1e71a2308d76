"""Formats of a job's records, with Hadoop's names: input, what commands read and write, output. Parts of `contract`."""

import enum

import msgspec

LF_ONLY = "LF"  # `InputFormat.record_delimiter` of lines that end at LF only, and keep a byte order mark


class InputFormatType(enum.StrEnum):
    """Hadoop's input formats. CombineTextInputFormat is TextInputFormat with splits of several files."""

    TEXT = "TextInputFormat"
    N_LINE = "NLineInputFormat"
    KEY_VALUE = "KeyValueTextInputFormat"


class InputFormat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How input is cut into records, and what the mapper reads of them."""

    type: InputFormatType = InputFormatType.TEXT
    record_delimiter: str = ""  # textinputformat.record.delimiter; "": CR, LF and CRLF; `LF_ONLY`: LF
    lines_per_map: int = 1  # mapreduce.input.lineinputformat.linespermap, with NLineInputFormat
    key_value_separator: str = "\t"  # mapreduce.input.keyvaluelinerecordreader.key.value.separator
    ignore_key: bool | None = None  # stream.map.input.ignoreKey; None: Hadoop's default, True with TextInputFormat only
    field_separator: str = "\t"  # stream.map.input.field.separator, between key and value as the mapper reads them


BETWEEN_STEPS = InputFormat(record_delimiter=LF_ONLY)
"""Input of the steps after the first: lines that the runtime wrote."""


class ReduceFields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Keys and values of what reducers and combiners read and write."""

    input_separator: str = "\t"  # stream.reduce.input.field.separator, between key and value as they read them
    output_separator: str = "\t"
    """stream.reduce.output.field.separator: separator of the fields of the lines that they write."""
    num_output_key_fields: int = 1  # stream.num.reduce.output.key.fields


class OutputFormat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the lines of reducers, and of mappers without reduces, are written to files."""

    separator: str = "\t"
    """mapreduce.output.textoutputformat.separator, between key and value; a line without a value has it too. Between
    steps it is a TAB."""
    key_only: bool = False  # lines are written as the command wrote them, like stream.reduce.output=keyonlytext
    lazy: bool = False  # no file without a line (LazyOutputFormat)

"""The CustomResourceDefinition of MRJob."""

from boathouse.resources.crd import AGE, CustomResource, PrinterColumn
from boathouse.resources.mrjob import names, status

MRJOB = CustomResource(
    kind=names.KIND,
    plural=names.PLURAL,
    short_names=("mrj",),
    model=status.MRJob,
    columns=(
        PrinterColumn(name="Phase", json_path=".status.phase", description="Where the job is."),
        PrinterColumn(name="Queue", json_path=".status.queue", description="The queue the job is in."),
        PrinterColumn(name="%", type="integer", json_path=".status.progressPercent", description="How far the job is."),
        PrinterColumn(name="Progress", json_path=".status.progress", description="Tasks done, of all."),
        PrinterColumn(
            name="Reason", json_path=".status.reason", description="Why the job is pending or failed.", priority=1
        ),
        PrinterColumn(
            name="Failures",
            type="integer",
            json_path=".status.failures.user",
            description="Attempts that failed.",
            priority=1,
        ),
        AGE,
    ),
)

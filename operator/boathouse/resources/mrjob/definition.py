"""The CustomResourceDefinition of MRJob."""

from boathouse.resources.crd import AGE, CustomResource, PrinterColumn
from boathouse.resources.mrjob import names, status

MRJOB = CustomResource(
    kind=names.KIND,
    plural=names.PLURAL,
    short_names=("mrj",),
    model=status.MRJob,
    columns=(
        PrinterColumn(name="Phase", json_path=".status.phase", description="Phase of the job."),
        PrinterColumn(name="Queue", json_path=".status.queue", description="Queue of the job."),
        PrinterColumn(
            name="%", type="integer", json_path=".status.progressPercent", description="Progress of the job in percent."
        ),
        PrinterColumn(name="Progress", json_path=".status.progress", description="Succeeded tasks, of all tasks."),
        PrinterColumn(
            name="Reason", json_path=".status.reason", description="Why the job is pending or failed.", priority=1
        ),
        PrinterColumn(
            name="Failures",
            type="integer",
            json_path=".status.failures.user",
            description="Failed attempts (user errors).",
            priority=1,
        ),
        AGE,
    ),
)

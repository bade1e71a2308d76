"""SparkApp as a CustomResourceDefinition."""

from boathouse.resources.crd import AGE, CustomResource, PrinterColumn
from boathouse.resources.sparkapp import names
from boathouse.resources.sparkapp.status import SparkApp

SPARKAPP = CustomResource(
    kind=names.SPARKAPP_KIND,
    plural=names.SPARKAPP_PLURAL,
    short_names=("sapp",),
    model=SparkApp,
    columns=(
        PrinterColumn(name="Phase", json_path=".status.phase", description="Where the application is."),
        PrinterColumn(name="Queue", json_path=".status.queue", description="The queue the application is in."),
        PrinterColumn(
            name="Attempt", type="integer", json_path=".status.attempt", description="The current attempt, from 1."
        ),
        PrinterColumn(
            name="Executors",
            type="integer",
            json_path=".status.executors.running",
            description="Executors that run.",
        ),
        PrinterColumn(
            name="%",
            type="integer",
            json_path=".status.progressPercent",
            description="Tasks done of the running jobs.",
        ),
        PrinterColumn(
            name="UI", json_path=".status.driver.uiAddress", description="The address of Spark's UI.", priority=1
        ),
        PrinterColumn(
            name="Reason",
            json_path=".status.reason",
            description="Why the application is pending or failed.",
            priority=1,
        ),
        AGE,
    ),
)

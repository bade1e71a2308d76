"""core-site.xml: the default file system, and how names and users are treated. Pure."""

from boathouse.services.mrcluster import naming, ports
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.settings.paths import USER


def of(cluster: Cluster) -> dict[str, str]:
    """Return the settings that Boathouse sets.

    Tokens name services by host instead of address, because a pod that is created again has another address.
    """
    return {
        "fs.defaultFS": f"hdfs://{naming.Names(cluster).fqdn(naming.MASTER)}:{ports.NAME_NODE}",
        "hadoop.http.staticuser.user": USER,
        "hadoop.security.authentication": "simple",
        "hadoop.security.token.service.use_ip": "false",
        "hadoop.tmp.dir": "/tmp/hadoop",  # noqa: S108 - inside the pod
    }

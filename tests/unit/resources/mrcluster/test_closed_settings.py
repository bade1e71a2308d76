"""Which settings of Hadoop are Boathouse's, and which are the user's."""

import re

from boathouse.resources.mrcluster import spec

OURS = """
fs.defaultFS fs.default.name hadoop.tmp.dir hadoop.security.authentication hadoop.security.token.service.use_ip
hadoop.proxyuser.root.hosts hadoop.http.staticuser.user dfs.http.policy
dfs.namenode.name.dir dfs.name.dir dfs.namenode.edits.dir dfs.name.edits.dir dfs.namenode.checkpoint.dir
fs.checkpoint.dir
dfs.namenode.rpc-address dfs.namenode.http-address dfs.http.address dfs.namenode.secondary.http-address
dfs.secondary.http.address dfs.namenode.rpc-bind-host dfs.namenode.http-bind-host dfs.namenode.servicerpc-bind-host
dfs.namenode.datanode.registration.ip-hostname-check dfs.hosts dfs.hosts.exclude dfs.nameservices
dfs.federation.nameservices dfs.ha.namenodes.x dfs.replication dfs.namenode.replication.max dfs.blocksize dfs.block.size
dfs.namenode.fs-limits.min-block-size dfs.namenode.resource.du.reserved dfs.webhdfs.enabled dfs.permissions
dfs.permissions.enabled dfs.cluster.administrators dfs.datanode.data.dir dfs.data.dir dfs.datanode.address
dfs.datanode.http.address dfs.datanode.ipc.address dfs.datanode.hostname slave.host.name
dfs.datanode.use.datanode.hostname dfs.client.use.datanode.hostname
yarn.resourcemanager.hostname yarn.resourcemanager.bind-host yarn.resourcemanager.address
yarn.resourcemanager.scheduler.address yarn.resourcemanager.webapp.address yarn.resourcemanager.scheduler.class
yarn.resourcemanager.recovery.enabled yarn.resourcemanager.store.class yarn.resourcemanager.fs.state-store.uri
yarn.resourcemanager.work-preserving-recovery.enabled yarn.resourcemanager.nodes.exclude-path yarn.node-labels.enabled
yarn.node-labels.fs-store.root-dir yarn.node-labels.configuration-type yarn.scheduler.minimum-allocation-mb
yarn.scheduler.maximum-allocation-mb yarn.nodemanager.address yarn.nodemanager.hostname yarn.nodemanager.bind-host
yarn.nodemanager.local-dirs yarn.nodemanager.log-dirs yarn.nodemanager.aux-services yarn.nodemanager.env-whitelist
yarn.nodemanager.resource.memory-mb yarn.nodemanager.resource.cpu-vcores yarn.nodemanager.vmem-check-enabled
yarn.nodemanager.pmem-check-enabled yarn.nodemanager.node-labels.provider
yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage yarn.nodemanager.remote-app-log-dir
yarn.log-aggregation-enable yarn.scheduler.capacity.root.queues yarn.scheduler.capacity.root.default.capacity
yarn.scheduler.capacity.maximum-am-resource-percent yarn.scheduler.capacity.resource-calculator
yarn.scheduler.capacity.node-locality-delay yarn.scheduler.capacity.root.accessible-node-labels
yarn.scheduler.capacity.root.default.accessible-node-labels.transient.capacity
mapreduce.framework.name mapreduce.application.classpath mapreduce.jobhistory.address
mapreduce.jobhistory.webapp.address mapreduce.jobhistory.bind-host mapreduce.jobhistory.intermediate-done-dir
mapreduce.jobhistory.done-dir yarn.app.mapreduce.am.staging-dir mapreduce.job.emit-timeline-data mapreduce.job.tags
"""
THEIRS = """
fs.s3a.endpoint fs.s3a.aws.credentials.provider io.file.buffer.size ipc.client.connect.max.retries fs.trash.interval
dfs.heartbeat.interval dfs.namenode.heartbeat.recheck-interval dfs.namenode.checkpoint.period
dfs.namenode.safemode.extension dfs.datanode.du.reserved dfs.datanode.max.transfer.threads dfs.replication.min
yarn.am.liveness-monitor.expiry-interval-ms yarn.nodemanager.container-executor.class
yarn.resourcemanager.am.max-attempts
yarn.scheduler.capacity.root.default.user-limit-factor yarn.scheduler.maximum-allocation-vcores
yarn.app.mapreduce.am.resource.mb yarn.app.mapreduce.am.command-opts mapreduce.map.memory.mb mapreduce.map.java.opts
mapreduce.map.maxattempts mapreduce.task.io.sort.mb mapreduce.job.reduce.slowstart.completedmaps my.key
"""


def test_settings_of_boathouse_are_closed_and_others_are_open():
    assert [key for key in OURS.split() if not spec.is_closed(key)] == []
    assert [key for key in THEIRS.split() if spec.is_closed(key)] == []


def test_ignored_keys_are_named_once_each_in_order():
    ours, theirs = {"fs.defaultFS": "x", "my.key": "y"}, {"dfs.name.dir": "z"}
    assert spec.open_settings(ours) == {"my.key": "y"}
    assert spec.closed_keys(ours, None, theirs) == ("dfs.name.dir", "fs.defaultFS")


def test_each_expression_closes_a_key_of_the_list_above():
    assert [part for part in spec.CLOSED if not any(re.fullmatch(part, key) for key in OURS.split())] == []

"""Reading a container's CPU from its cgroup, in both versions."""

import time

import pytest

from boathouse_e2e.container_cpu import ContainerCpu, LimitSampler
from boathouse_e2e.errors import ClusterError

ID = "containerd://0abc"


def v1(root):
    for controller in ("cpu", "cpuacct"):
        (root / controller / "kubepods" / "pod1" / "0abc").mkdir(parents=True)
    folder = root / "cpu/kubepods/pod1/0abc"
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    (root / "cpuacct/kubepods/pod1/0abc/cpuacct.usage").write_text("2500000000\n")

    def limit(quota):
        (folder / "new").write_text(f"{quota}\n")
        (folder / "new").replace(folder / "cpu.cfs_quota_us")  # at once, as a kernel

    return limit


def v2(root):
    (root / "cgroup.controllers").touch()
    folder = root / "kubepods.slice/pod1/cri-containerd-0abc.scope"
    folder.mkdir(parents=True)
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    return lambda quota: (folder / "cpu.max").write_text(f"{'max' if quota < 0 else quota} 100000\n")


@pytest.mark.parametrize("version", [v1, v2])
def test_limit_and_usage_are_read(tmp_path, version):
    limit = version(tmp_path)
    container = ContainerCpu.find(ID, tmp_path)
    found = []
    for quota in (1000, 150_000, -1):
        limit(quota)
        found.append(container.limit_milli())
    assert found == [10, 1500, None]
    assert container.used_s() == 2.5
    assert container.rate(0.01) == 0


def test_a_container_of_another_machine_is_an_error(tmp_path):
    v1(tmp_path)
    for unknown in ("containerd://0def", ""):
        with pytest.raises(ClusterError, match="not on this machine"):
            ContainerCpu.find(unknown, tmp_path)


def test_the_moments_of_changed_limits_are_noted(tmp_path):
    limit = v1(tmp_path)
    limit(1000)
    with LimitSampler({"r": ContainerCpu.find(ID, tmp_path)}, every_s=0.001) as sampler:
        while not sampler.changes:
            time.sleep(0.001)
        changed_s = time.time()
        limit(50_000)
        while sampler.changed_s("r", 500, changed_s) is None:
            time.sleep(0.001)
    assert [change[1:] for change in sampler.changes] == [("r", 10), ("r", 500)]
    assert sampler.changed_s("r", 10, changed_s) is None

"""A shell in miniature that tells iKayak what happens; maps and reducers of a job are one class each."""

from boathouse_policies import framework, ikayak, model
from tests.unit.policies import builders as make

STAGES = {one.value: one for one in (model.Stage.MAP, model.Stage.REDUCE, model.Stage.DRIVER, model.Stage.EXECUTOR)}


class Shell(make.World):
    """Nodes of 8 cores and 16 GiB unless told."""

    def __init__(self, nodes=1, size=None, **config) -> None:
        self.config = ikayak.Config(**config)
        profile = ikayak.build(config=self.config)
        nodes = make.nodes(nodes, size or make.amount(8000, 16)) if isinstance(nodes, int) else nodes
        super().__init__(nodes, profile=profile)
        self.running, self.book = profile.observers
        self.decided: list[model.Decision] = []
        self.until_s: dict[model.TaskId, float] = {}
        self.refuses = False

    def tell(self, event) -> None:
        for one in self.profile.observers:
            one.observe(event)

    def job(
        self, name, *, kind="", submitted_s=None, locations=None, gang_min=0, **counts
    ) -> dict[str, model.TaskClass]:
        """A job with so many tasks of each kind; each value is (count, size)."""
        at_s = self.now_s if submitted_s is None else submitted_s
        job = make.job(name, kind=kind, submitted_s=at_s)
        classes = {
            what: make.task_class(job, size, what, stage=STAGES[what], gang_min=gang_min)
            for what, (_, size) in counts.items()
        }
        self.tell(
            model.Submitted(
                now_s=self.now_s,
                job=job,
                classes=tuple(classes.values()),
                tasks={classes[what].id: count for what, (count, _) in counts.items()},
            )
        )
        tasks = [one for what, (count, _) in counts.items() for one in make.tasks(classes[what], count)]
        if locations is not None:
            tasks = [
                make.task(classes["map"], i, locations=tuple(model.NodeName(n) for n in where))
                for i, where in enumerate(locations)
            ] + [one for one in tasks if one.task_class != classes.get("map", one).id]
        self.room.submit(job, list(classes.values()), tasks, placed=self.ledger)
        return classes

    def cycle(self, **options) -> framework.Plan:
        """Run a cycle; what is placed starts at once, and what is suspended or resumed is so at once."""
        plan = super().cycle(**options)
        self.decided += plan.decisions
        for one in plan.decisions:
            if isinstance(one, model.Suspend):
                self.suspend(one)
            elif isinstance(one, model.Resume):
                self.resume(one.task.id)
        for one in make.placements(plan):
            told = {"now_s": self.now_s, "task": one.task.id, "task_class": one.task_class.id, "job": one.job.id}
            self.tell(model.Placed(**told, node=one.node, resources=one.resources, distance=one.distance))
            self.tell(model.Started(**told, node=one.node))
        return plan

    def at(self, now_s, **options) -> framework.Plan:
        """A cycle at a time, once suspensions that are over by then have ended."""
        self.now_s = now_s
        for task, until_s in list(self.until_s.items()):
            if until_s <= now_s:
                self.resume(task)
        self.room.tick(now_s)
        return self.cycle(**options)

    def run(self, name, on, *, kind="", maps=0, reduces=0, size=None, more_maps=0) -> dict[str, model.TaskClass]:
        """A job of which so many tasks run already, on a node; `more_maps` are still to come and do not wait here."""
        size = size or make.amount(1000, 1)
        classes = self.job(name, kind=kind, map=(0, size), reduce=(0, size))
        job = make.job(name, kind=kind, submitted_s=self.now_s)
        counts = {classes["map"].id: maps + more_maps, classes["reduce"].id: reduces}
        self.tell(model.Submitted(now_s=self.now_s, job=job, classes=tuple(classes.values()), tasks=counts))
        for what, count in (("map", maps), ("reduce", reduces)):
            for i in range(count):
                self.put(make.task(classes[what], i), classes[what], on)
        return classes

    def put(self, task, one, on) -> None:
        """A task runs on a node from now on."""
        node = model.NodeName(on)
        self.ledger.observe(
            framework.Account(
                id=task.id,
                node=node,
                resources=one.resources,
                job=one.job,
                queue=model.QueueName("default"),
                task_class=one.id,
            )
        )
        told = {"now_s": self.now_s, "task": task.id, "task_class": one.id, "job": one.job, "node": node}
        self.tell(model.Placed(**told, resources=one.resources, distance=model.Distance.ANYWHERE))
        self.tell(model.Started(**told))

    def about(self, task) -> dict:
        """What every event of a running task says."""
        one = self.running.tasks[task]
        return {"now_s": self.now_s, "task": task, "task_class": one.task_class, "job": one.job, "node": one.node}

    def suspend(self, decision) -> None:
        """Carry a decision out, or refuse it."""
        if self.refuses:
            self.tell(model.Refused(now_s=self.now_s, decision=decision, reason="NotSupported"))
            return
        self.until_s[decision.task.id] = decision.until_s
        about = self.about(decision.task.id)
        self.tell(model.Suspended(**about, resources=decision.resources, until_s=decision.until_s))

    def resume(self, task) -> None:
        """A suspended task goes on."""
        del self.until_s[task]
        if task in self.running.tasks:
            self.tell(model.Resumed(**self.about(task), resources=self.running.tasks[task].resources))

    def report(self, one, index, now_s, fraction, *, phase="shuffle", gib=1.0) -> None:
        """A reducer reports."""
        task = make.task(one, index).id
        running = self.running.tasks[task]
        counters = {"cpu_milli": float(one.resources.cpu_milli), "input_bytes": gib * (1 << 30)}
        self.tell(
            model.Progress(
                now_s=now_s,
                task=task,
                task_class=one.id,
                job=one.job,
                node=running.node,
                fraction=fraction,
                phase=phase,
                counters=counters,
            )
        )

    def finish(self, one, index, now_s, seconds=10.0) -> None:
        """A task ends."""
        task = make.task(one, index).id
        running = self.running.tasks[task]
        told = {"now_s": now_s, "task": task, "task_class": one.id, "job": one.job, "node": running.node}
        self.now_s = now_s
        self.end(task)
        self.tell(model.Finished(**told, duration_s=seconds, counters={}))

    @property
    def reserved(self) -> set[str]:
        return set(self.room.reserved)

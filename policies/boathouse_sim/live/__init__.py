"""Simulations in which run times depend on what happens: neighbours, suspension, shuffles, executors, outages."""

from boathouse_sim.live.application import Application
from boathouse_sim.live.course import Course, LiveRun, Pod, Report
from boathouse_sim.live.knowledge import TaskRecord
from boathouse_sim.live.mapreduce import MapReduce
from boathouse_sim.live.shell import Live, LiveHeartbeats
from boathouse_sim.live.spark import DynamicAllocation, Spark, SparkStage
from boathouse_sim.live.world import LiveWorld

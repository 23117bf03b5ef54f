"""Executes compiled programs in simulated time, on the model of a network."""

from unisono.simulator.link_use import LinkUse
from unisono.simulator.prediction import CriticalPath, Hop, LinkLoad, Prediction
from unisono.simulator.simulation import simulate
from unisono.simulator.timeline import Timeline

__all__ = ["CriticalPath", "Hop", "LinkLoad", "LinkUse", "Prediction", "Timeline", "simulate"]

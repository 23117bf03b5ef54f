"""Executes compiled programs in simulated time, on the model of a network."""

from unisono.simulator.prediction import CriticalPath, Hop, LinkLoad, Prediction
from unisono.simulator.simulation import simulate

__all__ = ["CriticalPath", "Hop", "LinkLoad", "Prediction", "simulate"]

"""Draws schedules and recorded runs as interactive web pages; ADR 0015 explains how a page is built."""

from unisono.drawing.drawing import Drawing, draw

__all__ = ["Drawing", "draw"]

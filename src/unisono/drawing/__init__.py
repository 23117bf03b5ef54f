"""Turns a schedule into a page that one can watch; ADR 0015 says how the page is made."""

from unisono.drawing.drawing import Drawing, draw

__all__ = ["Drawing", "draw"]

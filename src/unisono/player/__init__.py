"""Plays a schedule with real numbers, in one process."""

from unisono.player.play import Frame, Playback, play

__all__ = ["Frame", "Playback", "play"]

"""The idea of each phase in one sentence, in English and Chinese: what a page says about it first."""

from unisono.drawing.phase_ideas.ideas import with_ideas

__all__ = ["with_ideas"]

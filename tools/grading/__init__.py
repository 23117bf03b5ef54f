"""Grades predictions against published measurements; tools/grade_predictions.py runs all modules.

A module of this package that grades has a function ``grades(data: Path) -> list[Grade]``.
"""

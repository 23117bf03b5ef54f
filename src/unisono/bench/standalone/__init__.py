"""The parts that run without unisono: the guard, and the ranks in the environments of other libraries.

This folder is put on the path of the ranks (``PYTHONPATH``). It holds nothing else, because a `report.py` on
that path would hide a module of that name in another library.
"""

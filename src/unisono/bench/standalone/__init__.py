"""What runs without unisono: the guard, and the ranks in the environments of other libraries.

This folder is put on the path of the ranks (``PYTHONPATH``). It holds nothing else, because a `report.py` of ours on
that path would hide somebody else's.
"""

"""Where the measured table of algorithms is kept (see choice.py)."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from unisono.comm.choice import Table


def table_path() -> Path:
    """Return the file; a user may delete it at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "unisono" / "algorithms.json"


def load_table() -> Table:
    """Return what was measured on this machine; nothing if it was not, or cannot be read."""
    try:
        found = json.loads(table_path().read_text())
        return {
            collective: {size: [[int(row[0]), str(row[1])] for row in rules] for size, rules in sizes.items()}
            for collective, sizes in found["table"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return {}


def store_table(measured: Table) -> None:
    """Add what was measured to what is stored; other numbers of ranks stay as they were."""
    known = load_table()
    for collective, sizes in measured.items():
        known.setdefault(collective, {}).update(sizes)
    path = table_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as part:
        json.dump({"table": known}, part, indent=1)
    os.replace(part.name, path)

from __future__ import annotations

import pytest

from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)

pytest.importorskip("torch")

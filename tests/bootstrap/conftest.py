from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)

"""One step of each strategy, small enough that its table of collectives fits a page: see parallel_pages.py."""

"""``python -m unisono`` is the command ``unisono``."""

from unisono.cli.main import main

raise SystemExit(main())

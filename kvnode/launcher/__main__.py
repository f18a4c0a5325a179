"""``python -m kvnode.launcher``."""

import sys

from kvnode.launcher.main import main

sys.exit(main())

"""``python -m controller`` runs the operator."""

import sys

from controller.main import main

sys.exit(main())

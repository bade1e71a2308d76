"""`python -m boathouse`: run the operator."""

import sys

from boathouse import main

if __name__ == "__main__":
    sys.exit(main.main())

"""Where the tests run: run.py --device sets it."""

DEVICE = "emu"  # or the number of a GPU

"""Where the tests run: run.py --device sets it."""

DEVICE = "emu"  # or the number of a GPU
IS_HOPPER = False  # run.py --hopper: the emulator passes for one

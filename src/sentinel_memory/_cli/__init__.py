"""The parts of the command line; the commands themselves are in ``cli``."""

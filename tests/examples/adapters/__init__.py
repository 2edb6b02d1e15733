"""The adapters in ``examples/adapters``, against the real frameworks."""

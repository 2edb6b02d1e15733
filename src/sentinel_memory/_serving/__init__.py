"""The tools of the memory server without the protocol; only ``mcp.py`` imports these."""

"""Standalone mode: virtual machines of this machine, with no cluster at all."""

"""Whose memory is it: the processes of a VM measured against what was requested for it."""

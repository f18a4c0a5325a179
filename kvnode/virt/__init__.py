"""libvirt: connection, domain handle, capabilities, and what the installed version needs done to a domain
first.
"""

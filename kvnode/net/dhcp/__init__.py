"""DHCP for one guest: a server for each of its interfaces, which knows one client and one address.

A guest behind a ``bridge`` or ``masquerade`` binding asks for its address by DHCP; the launcher answers on
the interface's bridge with what the agent left (bridge), or what the binding prescribes (masquerade).
There is nothing to hand out and nothing to remember, so a server has no state.

No router advertisements are sent, as in the reference: DHCPv6 carries no route, so a guest that needs the
IPv6 gateway of a masquerade network names it in its cloud-init network data.
"""

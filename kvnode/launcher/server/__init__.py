"""The command server: it checks what the node agent asks (``kubevirt.cmd.v1``), passes it on to the domain
manager, and wraps the answer.
"""

"""The admission webhooks of VirtualMachines and VirtualMachineInstances.

`reviews` reads what the API server asks and writes the answer, `instances` and `machines` decide it with the library,
`server` listens, `certificates` and `store` see to its certificate, `registration` tells the API server whom to trust.
"""

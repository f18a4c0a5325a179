"""The controllers of VirtualMachines and VirtualMachineInstances: what a cluster's state asks for, decided.

Each controller gets its caches, the API server, an event recorder, a queue and a clock as small protocols
(`ports`), looks at one object at a time, and answers with calls. Nothing here watches, waits or retries.
"""

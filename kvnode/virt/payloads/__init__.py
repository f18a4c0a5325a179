"""The JSON that the launcher's answers and requests carry in their fields, as tables of Go structures.

Written with :func:`kvnode.virt.domain_json.gojson.encode`, read with ``decode``: the bytes and the leniency
are the reference's. A module a subject; docs/wire.md says which field carries what.
"""

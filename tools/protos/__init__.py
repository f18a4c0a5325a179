"""Generates the protobuf modules of ``kvnode/rpc`` from ``protos/``."""

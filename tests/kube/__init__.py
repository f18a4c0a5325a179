"""Tests of kvnode.kube."""

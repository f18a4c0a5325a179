"""Tests of the node controller."""

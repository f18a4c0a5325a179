"""The tests; their paths mirror those of what they test."""

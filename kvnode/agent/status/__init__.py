"""Fields of a VMI's status that the node agent sets, and the one write of a pass."""

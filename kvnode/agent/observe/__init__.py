"""What the agent shows of its node: metrics, health and a page."""

"""The whole on a real cluster: images, agents, launcher pods, guests."""

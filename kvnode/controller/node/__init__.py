"""The controller of nodes: what becomes of VMIs whose node is lost."""

from kvnode.controller.node.controller import NodeController

__all__ = ["NodeController"]

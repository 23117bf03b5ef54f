"""The switches and cables between hosts: one module for each kind of fabric."""

from unisono.networks.fabrics.fabric import Fabric
from unisono.networks.fabrics.switch import Switch

__all__ = ["Fabric", "Switch"]

"""The switches and cables between hosts: one module for each kind of fabric."""

from unisono.networks.fabrics.dragonfly import Dragonfly
from unisono.networks.fabrics.fabric import Fabric
from unisono.networks.fabrics.fat_tree import FatTree, RailOptimized
from unisono.networks.fabrics.switch import Switch
from unisono.networks.fabrics.torus import Torus

__all__ = ["Dragonfly", "Fabric", "FatTree", "RailOptimized", "Switch", "Torus"]

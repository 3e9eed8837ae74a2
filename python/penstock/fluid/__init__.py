"""Fluid models: scenarios as delay-differential equations, and the stability of their loops.

penstock.run("home.toml", on="fluid")                 # what `penstock run home.toml --on fluid` does
penstock.fluid.loop(flows=60, rtt_s=0.246, packets_per_s=3750, controller=penstock.fluid.PI()).margins()
"""

from penstock.fluid.stability import PI, PIE, RED, Loop, Margins, loop

__all__ = ["PI", "PIE", "RED", "Loop", "Margins", "loop"]

"""Training: recipes, losses, the loop, and checkpoints that survive a kill."""

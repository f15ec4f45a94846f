"""Fused updates of the models whose differences are those of next neighbours."""

"""Drawing for people to look at: coloured depth, panels with bars, contact sheets."""

"""Where work runs: child processes, pools of them, and Ray clusters."""

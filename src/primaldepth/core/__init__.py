"""What every room speaks of: frames, predictions, methods, errors, settings, seeds."""

"""Every table and figure of the paper beside ours: run, or taken from the cache, then written as a page."""

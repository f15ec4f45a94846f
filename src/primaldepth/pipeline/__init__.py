"""From a request to a report: the inputs of a frame become a result, a report on it and files."""

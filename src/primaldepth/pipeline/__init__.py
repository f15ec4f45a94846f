"""Use, in one room: a request and the inputs of a frame become a result, a report on it and files."""

"""The service: an HTTP interface and a web page over one queue, with limits on all that clients can ask."""

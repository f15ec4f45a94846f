"""The web page: Gradio over the same queue as the HTTP interface, without a byte from elsewhere."""

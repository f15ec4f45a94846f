"""What is known of samples: noise, spikes, lone samples, and how far a result departs from them."""

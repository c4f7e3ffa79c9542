"""Reference posteriors of networks, and the distances of approximations from them."""

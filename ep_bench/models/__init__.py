"""Models that several methods share: forward, gradients; arrays in and out."""

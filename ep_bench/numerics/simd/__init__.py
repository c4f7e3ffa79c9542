"""Vector registers of doubles for kernels: single registers (``vector``) and tiles of them (``tile``)."""

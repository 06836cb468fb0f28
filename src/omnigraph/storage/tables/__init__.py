"""Lance tables: handles and reads, staged writes, and the one module that commits them."""

"""Search: which texts match, how well they do, and how near vectors are."""

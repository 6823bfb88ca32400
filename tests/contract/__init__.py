"""What every adapter of the store promises, checked on each of them."""

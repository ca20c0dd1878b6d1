"""Change rates: priors, estimates and how far to trust them."""

"""The reproduction: figures, claims, builds, real data and the site."""

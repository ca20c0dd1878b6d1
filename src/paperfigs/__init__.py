"""What the notebooks of the figures need: claims, plotting, data and the build."""

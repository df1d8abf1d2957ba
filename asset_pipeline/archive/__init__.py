"""Make it durable: publication of pictures, and the manifest of each report."""

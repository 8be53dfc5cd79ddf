"""Guest kernels: the recipe (guest.config, patches/), the sources, and the store of kernels built from them."""

"""The guest kernel: its recipe (guest.config, patches/), its source, and the kernels built from them."""

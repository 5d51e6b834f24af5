"""What reproduces and extends the paper, with the library's public names: its experiments and its applications."""

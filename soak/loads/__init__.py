"""The programs that put load on the systems. Each logs what was acknowledged to it, a line each."""

"""The programs that put load on the systems. Each logs its attempts and their outcomes, a line each."""

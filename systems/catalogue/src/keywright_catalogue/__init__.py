"""Declarations of software that people run, a module for each program. They are ours, not the programs'."""

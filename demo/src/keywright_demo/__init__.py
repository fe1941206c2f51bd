"""`keywright up`: servers, services, simulated traffic and the explorer on one machine."""

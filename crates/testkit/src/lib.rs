//! A world in one process: API server, simulator and controllers on one clock, replayed from a seed.

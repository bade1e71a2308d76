"""Record what every profile decides, and compare two recordings. See `docs/benchmarks.md`."""

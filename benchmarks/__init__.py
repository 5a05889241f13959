"""Measurements as ratios against the floor, interleaved in one run; `make bench` runs them all."""

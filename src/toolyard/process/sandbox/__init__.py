"""Keeps children in: what they can read, write and reach, proved by trying to get out."""

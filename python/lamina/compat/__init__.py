"""Interfaces of other engines, for programs that were written for them."""

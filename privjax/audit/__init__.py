"""Attempts to break the guarantees that the rest of privjax states."""

from privjax.audit import density_ratio

__all__ = ('density_ratio',)

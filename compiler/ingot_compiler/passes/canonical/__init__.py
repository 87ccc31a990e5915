"""Rules of ``canonicalise``, one table per family of ops."""

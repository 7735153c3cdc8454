"""Other libraries, one module for each; nothing here is imported by ``import ckce``."""

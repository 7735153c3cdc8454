"""How a kernel matrix is computed with: the word is the file.

Start with auto.py. May touch the input room and the compiled core.
"""

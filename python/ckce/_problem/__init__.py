"""What will be computed: data, method, kernel, bandwidth and lambda, settled and named.

May touch the methods and the input room.
"""

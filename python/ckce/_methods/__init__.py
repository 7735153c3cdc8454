"""How a kernel matrix is computed with: the word is the file.

Start with auto.py. May touch the input room and the compiled core.
"""

from ckce._methods.auto import (
    METHODS,
    better_method,
    check_method,
    choose_features,
    choose_method,
    stand_in,
)
from ckce._methods.blocks import Blocks
from ckce._methods.cholesky import Cholesky
from ckce._methods.exact import Exact, iterates
from ckce._methods.fourier import Fourier
from ckce._methods.landmarks import Landmarks, choose_points, warn_of_missing
from ckce._methods.linear import Linear
from ckce._methods.method import Arrays, FeatureMap, Method, Rows, Space
from ckce._methods.pool import pool_of

"""The project's random numbers once more, as the docs specify them."""

import math

MASK = 2**64 - 1


class SplitMix64:
    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        return z ^ (z >> 31)

    def uniform(self):
        return ((self.bits() >> 11) + 0.5) * 2.0**-53

    def below(self, count):
        limit = MASK - MASK % count
        while (draw := self.bits()) >= limit:
            pass
        return draw % count


# AS 241 (Wichura 1988): numerators and denominators of the middle, the tails and the far tails.
A = [3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3]
A += [1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4]
A += [3.3430575583588128105e4, 2.5090809287301226727e3]
B = [1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3]
B += [2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4]
B += [5.2264952788528545610e3]
C = [1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0]
C += [3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1]
C += [2.27238449892691845833e-2, 7.74545014278341407640e-4]
D = [1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1]
D += [1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4]
D += [1.05075007164441684324e-9]
E = [6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0]
E += [2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3]
E += [2.71155556874348757815e-5, 2.01033439929228813265e-7]
F = [1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2]
F += [7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7]
F += [2.04426310338993978564e-15]


def normal_quantile(u):
    def ratio(top, bottom, x):
        above = sum(a * x**i for i, a in enumerate(top))
        return above / sum(b * x**i for i, b in enumerate(bottom))

    q = u - 0.5
    if abs(q) <= 0.425:
        return q * ratio(A, B, 0.180625 - q * q)
    r = math.sqrt(-math.log(min(u, 1 - u)))
    z = ratio(C, D, r - 1.6) if r <= 5 else ratio(E, F, r - 5)
    return math.copysign(z, q)

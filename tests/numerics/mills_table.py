"""Computes the coefficients of ``ep_bench.numerics.normal`` in decimal arithmetic; run this file to print them.

Mills' ratio R(t) = Phi(-t) / phi(t) is interpolated as (t + k) R(t) at the Chebyshev points of a variable x. It is
linear in 1 / (t + k), with x = -1 at t = 0 and x = 1 at t = T. exp(r) is interpolated on |r| <= log(2) / 2.
"""

from __future__ import annotations

from decimal import Decimal, getcontext, localcontext

PRECISION = 60
K, T, DEGREE = Decimal(5), Decimal(38), 20
EXP_DEGREE = 11


def pi():
    """By the arithmetic-geometric mean of Gauss and Legendre."""
    a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), Decimal(1)
    for _ in range(8):
        a, b, t, p = (a + b) / 2, (a * b).sqrt(), t - p * ((a - b) / 2) ** 2, 2 * p
    return (a + b) ** 2 / (4 * t)


def cosine(x):
    term, total, n = Decimal(1), Decimal(1), 0
    while abs(term) > Decimal(10) ** -(getcontext().prec + 2):
        n += 2
        term *= -x * x / (n * (n - 1))
        total += term
    return total


def mills(t):
    """R(t) = exp(t^2/2) (sqrt(pi/2) - exp(-t^2/2) sum t^(2n+1)/(2n+1)!!), with extra digits for the cancellation."""
    with localcontext() as context:
        context.prec = PRECISION + int(t * t / 4) + 20
        term, series, n = t, t, 0
        while term > Decimal(10) ** -(PRECISION + 10):
            n += 1
            term *= t * t / (2 * n + 1)
            series += term
        return (pi() / 2).sqrt() * (t * t / 2).exp() - series


def chebyshev_coefficients(function, degree):
    """Monomial coefficients, lowest first, of the interpolant at the degree + 1 Chebyshev points of [-1, 1]."""
    n = degree + 1
    angles = [pi() * (2 * i + 1) / (2 * n) for i in range(n)]
    values = [function(cosine(angle)) for angle in angles]
    series = [2 * sum(v * cosine(j * a) for v, a in zip(values, angles, strict=True)) / n for j in range(n)]
    series[0] /= 2
    before, now = [Decimal(1)], [Decimal(0), Decimal(1)]
    out = [Decimal(0)] * n
    for j, c in enumerate(series):
        polynomial = before if j == 0 else now
        for power, one in enumerate(polynomial):
            out[power] += c * one
        if j:
            after = [Decimal(0), *(2 * one for one in now)]
            for power, one in enumerate(before):
                after[power] -= one
            before, now = now, after
    return out


def mills_coefficients():
    low, high = 1 / K, 1 / (T + K)

    def function(x):
        t = 1 / (low + (high - low) * (x + 1) / 2) - K
        return (t + K) * mills(max(t, Decimal(0)))

    return [float(c) for c in chebyshev_coefficients(function, DEGREE)]


def density_coefficients():
    """exp(r) / sqrt(2 pi) on |r| <= log(2) / 2, in powers of r."""
    half = Decimal(2).ln() / 2
    scaled = chebyshev_coefficients(lambda x: (x * half).exp() / (2 * pi()).sqrt(), EXP_DEGREE)
    return [float(c / half**power) for power, c in enumerate(scaled)]


def main():
    getcontext().prec = PRECISION
    for name, values in (("MILLS", mills_coefficients()), ("DENSITY", density_coefficients())):
        print(f"{name} = (")
        for value in values:
            print(f"    {value!r},")
        print(")")


if __name__ == "__main__":
    main()

"""The arctangent in vector registers.

The angle of t >= 0 is in one of three sectors, with borders at about tan(pi / 8) and tan(3 pi / 8). The substitutions
(t - 1) / (t + 1) and -1 / t map the second and the third sector to the first. There arctan(r) = r + r^3 q(r^2), where q
is the ratio of polynomials of S. Moshier's Cephes library, accurate to 2 units in the last place.
"""

from __future__ import annotations

import math
from typing import Any

from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd.vector import absolute, select_above

FIRST, SECOND = 0.66, 1.0 + math.sqrt(2.0)  # borders between the sectors


@jit(relaxed=FUSE, inline=True)
def arctangent(x: Any) -> Any:
    """Return the arctangent of a vector or a float."""
    t = absolute(x)
    middle = (t - 1.0) / (t + 1.0)
    r = select_above(t, SECOND, -1.0 / t, select_above(t, FIRST, middle, t))
    angle = select_above(t, SECOND, 0.5 * math.pi, select_above(t, FIRST, 0.25 * math.pi, t * 0.0))
    z = r * r
    above = -75.00855792314704667 + z * (-16.15753718733365076 + z * -0.8750608600031904123)
    above = -64.85021904942025371 + z * (-122.8866684490136173 + z * above)
    below = 165.0270098316988542 + z * (24.85846490142306298 + z)
    below = 194.5506571482613964 + z * (485.3903996359136965 + z * (432.8810604912902669 + z * below))
    angle = angle + (r + r * (z * (above / below)))
    return select_above(x, 0.0, angle, -angle)

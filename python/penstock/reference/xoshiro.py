"""The random numbers of the Rust core: xoshiro256++ (Blackman and Vigna), seeded by name through BLAKE3.

Needs the package `blake3`.
"""

from blake3 import blake3

MASK = (1 << 64) - 1


def rotated(value: int, by: int) -> int:
    """`value` rotated left in 64 bits."""
    return (value << by | value >> (64 - by)) & MASK


class Xoshiro256PlusPlus:
    """One named stream of a seed: the state is BLAKE3 of the seed (8 bytes, little endian) and the name."""

    def __init__(self, seed: int, name: str) -> None:
        state = blake3(seed.to_bytes(8, "little") + name.encode()).digest(length=32)
        self.s = [int.from_bytes(state[i : i + 8], "little") for i in range(0, 32, 8)]
        self.stem = self.s[0]

    def branch(self, name: str) -> "Xoshiro256PlusPlus":
        """The stream `name` of the owner of this one: its seed is the first word of this state."""
        return Xoshiro256PlusPlus(self.stem, name)

    def bits(self) -> int:
        """The next 64 random bits."""
        s = self.s
        result = (rotated((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        shifted = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotated(s[3], 45)
        return result

    def uniform(self) -> float:
        """Uniform in [0, 1) with 53 random bits."""
        return (self.bits() >> 11) * 2.0**-53

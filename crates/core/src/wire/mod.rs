//! Bytes of real packets: parsing without allocation, and rewriting that keeps checksums right.

//! The programs in the kernel beside the core, and the testbed of all tests with real packets.

mod parity;
mod police;
mod testbed;
mod traffic;

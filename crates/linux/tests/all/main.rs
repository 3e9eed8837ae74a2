//! The programs in the kernel beside the core, and the testbed of all tests with real packets.

mod bridge;
mod lead;
mod limit;
mod parity;
mod police;
mod segments;
mod system;
mod testbed;
mod traffic;

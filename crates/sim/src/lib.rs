//! The packet simulator: virtual time, links, hosts, TCP, traffic.

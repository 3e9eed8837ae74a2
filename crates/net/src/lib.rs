//! Real packets: a userspace bottleneck that runs the same queue disciplines.

//! Stacks that are programs.

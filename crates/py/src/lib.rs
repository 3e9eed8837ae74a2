//! The Python binding: converts, and holds no algorithm.

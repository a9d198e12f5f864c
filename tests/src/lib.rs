//! Black-box tests through the binary.

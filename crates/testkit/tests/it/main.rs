//! The memory journal passes the laws that it serves to test.

mod laws;

//! The fakes keep to what they stand for: the memory journal to the laws, the provider to its script.

mod laws;
mod provider;

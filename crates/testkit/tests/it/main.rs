//! The fakes keep to what they stand for: the memory journal to the laws, the provider to its script;
//! and no law passes on a journal that breaks it.
#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

mod broken;
mod laws;
mod provider;

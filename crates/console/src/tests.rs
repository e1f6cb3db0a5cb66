//! Tests of the console over a real store.

mod guard;
mod world;

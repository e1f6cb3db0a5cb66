//! Tests of pages: each drives the router over a real store, as a visitor of some role.

mod ops_forms;
mod ops_numbers;
mod ops_sight;
mod ops_world;

//! The pages, driven through the console's router over a real database. Never: a template or a section
//! alone; what counts is what a visitor gets.

mod book;
mod changes;
mod forms;
mod guard;
mod hostile;
mod issuing;
mod money;
mod numbers;
mod reach;
mod sight;
pub(crate) mod site;
mod statement;
mod walk;
mod whole_book;
pub(crate) mod world;

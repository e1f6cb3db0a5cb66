//! The pages, driven through the console's router over a real database. Never: a template or a section
//! alone; what counts is what a visitor gets.

mod audit_log;
mod book;
mod brand;
mod changes;
mod columns;
mod counting;
mod figures;
mod flash;
mod forms;
mod guard;
mod hostile;
mod issuing;
mod links;
mod meters;
mod money;
mod narrowing;
mod numbers;
mod people;
mod playground;
mod reach;
mod review;
mod search;
mod sight;
mod sign_in;
pub(crate) mod site;
mod statement;
mod walk;
mod whole_book;
mod words;
pub(crate) mod world;

/// URL of the server of the tests, without a database.
#[expect(clippy::disallowed_methods, reason = "tests have no configuration to read it from")]
fn server() -> String {
    std::env::var("HOLDFAST_TEST_POSTGRES").expect("`cargo xtask test console` starts a server")
}

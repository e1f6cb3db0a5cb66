//! A book of 10^6 operations, and what it costs to look at it: a whole audit, pages of operations, and reports of one
//! customer by every two keys, and edits of the limits of a key that has so many. `cargo xtask bench --scale` runs it on a file and on a server:
//!
//! ```text
//! cargo bench -p holdfast-store --bench scale -- file
//! cargo bench -p holdfast-store --bench scale -- file limits  edits of limits only
//! cargo bench -p holdfast-store --bench scale -- postgres     HOLDFAST_TEST_POSTGRES is a server's URL
//! ```
//!
//! It fails where a page or a report takes longer than the manual says, or where the audit finds anything or has more
//! memory than is said there: the rows are made by SQL, and make a book that is in order. Times are of this process;
//! processor time and memory of a server are its own.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot be made")]
#![expect(clippy::indexing_slicing, reason = "of lists whose length is written beside them")]

mod audit;
mod book;
mod limits;
mod pages;
mod reports;

use std::io::Write as _;
use std::process::ExitCode;

use book::Book;

fn say(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").unwrap();
}

#[tokio::main]
async fn main() -> ExitCode {
    // Cargo says what it runs, too.
    let mut named = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let (kind, part) = (named.next(), named.next());
    let mut book = match kind.as_deref() {
        Some("file") => Book::on_a_file().await,
        Some("postgres") => Book::on_a_server().await,
        Some(_) | None => {
            say("scale wants `file` or `postgres`");
            return ExitCode::FAILURE;
        }
    };
    book.fill().await;
    let mut slow = Vec::new();
    if part.as_deref() != Some("limits") {
        reports::sum(&mut book).await;
        // Before pages and reports, whose memory stays with the process. It reads the sums of hours as well.
        slow.extend(audit::verify(&book.store).await);
        slow.extend(pages::read(&book.store).await);
        slow.extend(reports::read(&book.store).await);
    }
    slow.extend(limits::edit(&mut book).await);
    book.end().await;
    for name in &slow {
        say(&format!("NOT MET: {name}"));
    }
    if slow.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

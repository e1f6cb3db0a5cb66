//! The example of a journal of one's own runs as it stands, and is a journal by every law.

#[path = "../../examples/tiny_journal.rs"]
mod example;

use holdfast_domain::{ApiKeys, Journal, Nodes, Prices, Wallets};
use holdfast_testkit::laws::{Lists, Stores};

use self::example::TinyJournal;

#[test]
fn the_example_of_a_journal_runs() {
    example::main().unwrap();
}

/// It keeps neither API keys nor prices: its service does, or needs none.
impl Stores for TinyJournal {
    fn journal(&self) -> &dyn Journal {
        self
    }

    fn nodes(&self) -> &dyn Nodes {
        self
    }

    fn wallets(&self) -> &dyn Wallets {
        self
    }

    fn keys(&self) -> Option<&dyn ApiKeys> {
        None
    }

    fn prices(&self) -> Option<&dyn Prices> {
        None
    }

    fn lists(&self) -> Option<&dyn Lists> {
        None
    }
}

#[expect(clippy::unused_async, reason = "stores that are made of more need to wait")]
async fn fresh() -> TinyJournal {
    TinyJournal::default()
}

holdfast_testkit::journal_laws!(fresh);

//! The example of a journal of one's own runs as it stands, and is a journal by every law.

#[path = "../../examples/tiny_journal.rs"]
mod example;

use async_trait::async_trait;
use holdfast_domain::admin::RefusedRequests;
use holdfast_domain::admin::ports::CommandError::Unavailable;
use holdfast_domain::admin::{
    AccountAction, AccountReceipt, AccountRefusal, NewPosting, ResourceId, WalletAction,
    WalletRecord,
};
use holdfast_domain::{ApiKeys, Journal, Nodes, Prices, Restores, Statistics, Wallets};
use holdfast_testkit::commands::CommandResult;
use holdfast_testkit::laws::{Commands, Lists, Stores};

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

    fn statistics(&self) -> Option<&dyn Statistics> {
        None
    }

    fn refused_requests(&self) -> Option<&dyn RefusedRequests> {
        None
    }

    fn restores(&self) -> Option<&dyn Restores> {
        None
    }

    fn commands(&self) -> &dyn Commands {
        self
    }
}

/// The commands that the laws of a journal need. Its own postings name no cause of a refusal: whatever lacks is funds.
#[async_trait]
impl Commands for TinyJournal {
    async fn administer(&self, action: AccountAction) -> CommandResult {
        let at = self.clock().await.unwrap();
        let done = |thing, replayed| AccountReceipt { things: vec![thing], at, replayed };
        if let AccountAction::Wallet(WalletAction::Create(WalletRecord { wallet, .. })) = action {
            self.open(wallet.id, &wallet.name, wallet.currency);
            return Ok(done(ResourceId::Wallet(wallet.id), false));
        }
        let AccountAction::Post(NewPosting { posting, .. }) = action else {
            return Err(Unavailable("no law of a journal needs it".into()));
        };
        let wallet = self.find(posting.wallet).await.unwrap();
        let available = wallet.ok_or(AccountRefusal::NoWallet)?.available;
        let known = self.posting(posting.id).await.unwrap();
        match (self.post(&posting), known) {
            (Ok(()), _) => Ok(done(ResourceId::Posting(posting.id), false)),
            (Err(_), Some(known)) if known == posting => {
                Ok(done(ResourceId::Posting(posting.id), true))
            }
            (Err(_), Some(known)) => Err(AccountRefusal::PostingConflict(known).into()),
            (Err(_), None) => Err(AccountRefusal::InsufficientFunds { available }.into()),
        }
    }
}

#[expect(clippy::unused_async, reason = "stores that are made of more need to wait")]
async fn fresh() -> TinyJournal {
    TinyJournal::default()
}

holdfast_testkit::journal_laws!(fresh);

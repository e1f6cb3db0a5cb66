//! The update of a world's nodes: they begin as the release before, the database is migrated under their load, and a
//! node that is killed comes back as this version.
//!
//! Each fault is accompanied by a deposit through the node that is its victim. Its caller repeats the deposit under
//! its request key on every node, of either version, and it is made once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::{Dice, Report};
use crate::site::text;
use crate::{Account, Request, Site};

/// Largest deposit under load, in micros.
const DEPOSIT_MAX: u64 = 5_000_000;

/// State of an update.
#[derive(Debug)]
pub(super) struct Update {
    /// Credential of an owner.
    owner: String,
    is_migrated: AtomicBool,
    /// Places of nodes that are of the release before.
    old: Mutex<BTreeSet<usize>>,
    deposits: Mutex<Vec<Deposit>>,
}

/// Deposit with a request key of its own.
#[derive(Debug, Clone)]
pub(super) struct Deposit {
    request_key: String,
    wallet: String,
    amount: i64,
}

impl Update {
    /// A ledger that the release before made, with a funded account for each wallet, and another key of the last one.
    pub(super) fn begin(site: &Site, wallets: &[&str], funds: &str) -> (Self, Vec<Account>) {
        drop(site.previous_cli(&["migrate", "up"]).ok());
        let json = |words: &[&str]| -> Value { site.previous_cli(words).json() };
        let mut accounts: Vec<_> =
            wallets.iter().map(|name| site.account_by_previous(name, "USD", funds)).collect();
        let wallet = accounts.last().expect("a wallet").wallet.clone();
        let second = json(&["key", "issue", "--wallet", &wallet, "--name", "second", "--json"]);
        accounts.push(Account { wallet, id: text(&second, "id"), key: text(&second, "key") });
        let owner = json(&["admin-key", "issue", "--name", "owner", "--role", "owner", "--json"]);
        let update = Self {
            owner: text(&owner, "key"),
            is_migrated: AtomicBool::new(false),
            old: Mutex::default(),
            deposits: Mutex::default(),
        };
        (update, accounts)
    }

    fn old(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.old.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn deposits(&self) -> MutexGuard<'_, Vec<Deposit>> {
        self.deposits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the node that starts in a place is of the release before: all of them are, until the migration.
    pub(super) fn starts_old(&self, place: usize) -> bool {
        let is_old = !self.is_migrated.load(Ordering::Acquire);
        if is_old {
            self.old().insert(place);
        }
        is_old
    }

    /// The node in a place has ended.
    pub(super) fn end(&self, place: usize, report: &mut Report) {
        report.updated += u32::from(self.old().remove(&place));
    }

    /// Migrates the database under the nodes of the release before, unless it is migrated.
    pub(super) fn migrate(&self, site: &Site) {
        if !self.is_migrated.load(Ordering::Acquire) {
            drop(site.cli(&["migrate", "up"]).ok());
            self.is_migrated.store(true, Ordering::Release);
        }
    }

    /// Number of deposits under load.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.deposits().len()).expect("few")
    }

    /// Micros that were deposited in a wallet under load.
    pub(super) fn deposited(&self, wallet: &str) -> i64 {
        let deposits = self.deposits();
        deposits.iter().filter(|it| it.wallet == wallet).map(|it| it.amount).sum()
    }

    /// A new deposit in a wallet, for its caller to send.
    pub(super) fn add(&self, dice: &mut Dice, wallet: &str) -> Deposit {
        let deposit = Deposit {
            request_key: dice.key(),
            wallet: wallet.to_owned(),
            amount: 1 + i64::try_from(dice.below(DEPOSIT_MAX)).expect("small"),
        };
        self.deposits().push(deposit.clone());
        deposit
    }

    /// The request of a deposit to a node that listens at this port.
    pub(super) fn request(&self, deposit: &Deposit, port: u16) -> Request {
        let body = json!({
            "wallet_id": deposit.wallet, "amount_micros": deposit.amount, "source": "bank",
            "external_reference": deposit.request_key,
        });
        Request::post("/admin/v1/deposits", body.to_string())
            .host(&format!("localhost:{port}"))
            .bearer(&self.owner)
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", &deposit.request_key)
    }
}

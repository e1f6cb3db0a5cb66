//! Laws of API keys, wallets and prices: what is made once, found again, and never silently
//! replaced.
//!
//! Names and ids are taken once, also by calls that race. A revocation is for good. A rotation adds
//! a credential and dates the end of the others, never later than they ended already. A price
//! version keeps its numbers: other ones under its name are refused, in a pin as in a claim.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::keys};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! keys::a_revoked_key_stays_revoked(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::unwrap_used, reason = "a law that fails panics")]

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::ports::CommandError::{self, Refused};
use holdfast_domain::admin::{AccountRefusal, ResourceId};
use holdfast_domain::credential::{
    ApiKey, BalanceVisibility, Credential, Grant, NewApiKey, UsageScope,
};
use holdfast_domain::limits::{Counter, Limits, SpendLimit, SpendWindow};
use holdfast_domain::operation::Transition;
use holdfast_domain::ports::{CommitError, KnownCredential, PinError};
use holdfast_domain::{ApiKeyId, Micros, OperationId, Timestamp, WalletId};
use uuid::Uuid;

use super::Stores;
use super::counters::in_one_minute;
use super::tenant::{Tenant, credential, finish, judged, operation_change};
use crate::join::join_all;
use crate::sample;

/// 2100-01-01T00:00:00Z
const IN_2100: Timestamp = Timestamp::from_micros(4_102_444_800_000_000);

/// An issued key is found by its credential, as it was issued, and listed.
pub async fn an_issued_key_is_found_by_its_credential(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 0).await;
    let spend = SpendLimit { micros: Micros::new(25_000_000), window: SpendWindow::Month };
    let limits = Limits {
        requests_per_minute: Some(60),
        tokens_per_minute: Some(1 << 40),
        concurrency: Some(3),
        spend: Some(spend),
    };
    let models = ["a/b:1", "a/c", "z.9/B_c", "z.9/*"].map(|id| id.try_into().unwrap());
    let all = Grant {
        limits,
        models: Some(models.into()),
        balance: BalanceVisibility::Hidden,
        usage: UsageScope::Wallet,
        ends_at: Some(IN_2100),
    };
    let mut issued = Vec::new();
    for grant in [all, Grant::default()] {
        let external_id = Some(name("external"));
        let new = NewApiKey { grant, external_id, ..new_key(tenant.wallet, &name("key")) };
        let credential = credential(new.id);
        let key = issue(stores, &new, &credential).await;
        assert_eq!(key, new.issued_at(key.created_at));
        let known = stores.keys().unwrap().credential(credential.id).await.unwrap().unwrap();
        assert!(known.now >= key.created_at);
        assert_eq!((&known.credential, &known.api_key), (&credential, &key));
        issued.push(key);
    }
    let listed = stores.lists().unwrap().all_api_keys().await;
    assert_eq!(listed.iter().map(|key| key.id).next(), Some(tenant.api_key), "oldest first");
    assert_eq!(listed.into_iter().skip(1).collect::<Vec<_>>(), issued);
    assert_eq!(stores.keys().unwrap().credential(sample::fresh()).await.unwrap(), None);
}

/// A key is issued on a wallet that exists.
pub async fn a_key_needs_its_wallet(stores: &dyn Stores) {
    let new = new_key(sample::fresh(), &name("key"));
    let credential = credential(new.id);
    let refused = stores.commands().issue(&new, &credential).await;
    assert!(matches!(refused, Err(Refused(AccountRefusal::NoWallet))), "{refused:?}");
    assert_eq!(stores.lists().unwrap().all_api_keys().await, []);
    assert_eq!(stores.keys().unwrap().credential(credential.id).await.unwrap(), None);
}

/// Neither a name within a wallet nor an id is given twice, and a refused key leaves no row behind.
pub async fn names_of_keys_are_taken_once(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 0).await;
    let first = new_key(tenant.wallet, &name("key"));
    let key = issue(stores, &first, &credential(first.id)).await;
    let same_name = new_key(tenant.wallet, &first.name);
    let same_id = NewApiKey { id: first.id, ..new_key(tenant.wallet, &name("key")) };
    for (new, is_told) in [(same_name, true), (same_id, false)] {
        let credential = credential(new.id);
        let refused = stores.commands().issue(&new, &credential).await;
        let is_name = matches!(&refused, Err(Refused(AccountRefusal::NameTaken(_))));
        // An id is drawn by its issuer: no refusal of its own is needed for one that is taken.
        assert!(refused.is_err() && is_name == is_told, "{refused:?}");
        assert_eq!(stores.keys().unwrap().credential(credential.id).await.unwrap(), None);
    }
    assert_eq!(stores.lists().unwrap().all_api_keys().await.last(), Some(&key));
}

/// A single one of many keys of one name that are issued at once is.
pub async fn concurrent_issues_of_a_name_make_one_key(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 0).await;
    let name = name("key");
    let issues = (0..5).map(|_| async {
        let new = new_key(tenant.wallet, &name);
        stores.commands().issue(&new, &credential(new.id)).await
    });
    let issued = join_all(issues).await;
    assert_eq!(issued.iter().filter(|issued| issued.is_ok()).count(), 1, "{issued:?}");
    assert_eq!(stores.lists().unwrap().all_api_keys().await.len(), 2);
}

/// Revoking has a moment; a second time has no effect, and an unknown key has none.
pub async fn a_revoked_key_stays_revoked(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 0).await;
    let new = new_key(tenant.wallet, &name("key"));
    let credential = credential(new.id);
    let key = issue(stores, &new, &credential).await;
    let read =
        async || stores.keys().unwrap().credential(credential.id).await.unwrap().unwrap().api_key;
    let since = Some(stores.commands().revoke(key.id).await.unwrap().at);
    assert!(since.is_some_and(|since| since >= key.created_at));
    assert_eq!(read().await.revoked_at, since);
    stores.commands().revoke(key.id).await.unwrap();
    let known = stores.keys().unwrap().credential(credential.id).await.unwrap().unwrap();
    assert_eq!(known.api_key.revoked_at, since);
    assert_eq!(known.credential.ends_at, since, "its credentials end with it");
    let set_back = KnownCredential { now: known.api_key.created_at, ..known };
    assert!(set_back.has_ended(), "whatever the clock says");
    let listed = stores.lists().unwrap().all_api_keys().await;
    assert_eq!(listed.last().unwrap().revoked_at, since);
    assert_eq!(listed.first().unwrap().revoked_at, None, "another key is as it was");
    let refused = stores.commands().revoke(sample::fresh()).await;
    assert!(matches!(refused, Err(Refused(AccountRefusal::NoApiKey))), "{refused:?}");
}

/// A credential that was added is in force; the others end after the grace, or at their own end if that is
/// earlier.
pub async fn a_rotation_adds_a_credential_and_ends_the_others_later(stores: &dyn Stores) {
    let (keys, commands) = (stores.keys().unwrap(), stores.commands());
    let tenant = Tenant::new(stores, 0).await;
    let wallet = tenant.wallet;
    let new = new_key(wallet, &name("key"));
    let [first, second, third] = [(); 3].map(|()| credential(new.id));
    let issued = issue(stores, &new, &first).await;
    let end = async |credential: &Credential| {
        let known = keys.credential(credential.id).await.unwrap().unwrap();
        assert_eq!(known.api_key, issued, "the key is as it was");
        known.ends_at()
    };
    let rotated = commands.rotate(&second, wallet, Duration::from_secs(60)).await.unwrap();
    assert_eq!(rotated.things, [ResourceId::ApiKey(new.id)]);
    let soon = Some(rotated.at.after(Duration::from_secs(60)));
    let before = issued.created_at.after(Duration::from_secs(60));
    assert!(soon.is_some_and(|soon| soon >= before), "from now on, not from when it was issued");
    assert_eq!([end(&first).await, end(&second).await], [soon, None]);

    let rotated = commands.rotate(&third, wallet, Duration::from_secs(3_600)).await.unwrap();
    let later = Some(rotated.at.after(Duration::from_secs(3_600)));
    assert!(later > soon);
    assert_eq!([end(&first).await, end(&second).await, end(&third).await], [soon, later, None]);

    // Refused, so the others keep the ends that they have.
    let taken = commands.rotate(&third, wallet, Duration::ZERO).await;
    assert!(matches!(taken, Err(CommandError::Unavailable(_) | CommandError::Uncertain(_))));
    assert_eq!([end(&first).await, end(&second).await, end(&third).await], [soon, later, None]);
    let other = stores.lists().unwrap().all_api_keys().await.remove(0);
    assert_eq!((other.id, other.revoked_at), (tenant.api_key, None), "another key is as it was");
}

/// A key that is revoked, past its end or unknown gets no credential.
pub async fn a_key_that_has_ended_is_not_rotated(stores: &dyn Stores) {
    let (keys, commands) = (stores.keys().unwrap(), stores.commands());
    let tenant = Tenant::new(stores, 0).await;
    let wallet = tenant.wallet;
    let revoked = new_key(wallet, &name("key"));
    issue(stores, &revoked, &credential(revoked.id)).await;
    commands.revoke(revoked.id).await.unwrap();
    let ended = tenant.ended_api_key().await;
    for id in [revoked.id, ended] {
        let added = credential(id);
        let refused = commands.rotate(&added, wallet, Duration::from_secs(60)).await;
        assert!(matches!(refused, Err(Refused(AccountRefusal::ApiKeyEnded))), "{refused:?}");
        assert_eq!(keys.credential(added.id).await.unwrap(), None);
    }
    let unknown = credential(sample::fresh());
    let refused = commands.rotate(&unknown, wallet, Duration::from_secs(60)).await;
    assert!(matches!(refused, Err(Refused(AccountRefusal::NoApiKey))), "{refused:?}");
}

/// A standing shows all counters of one API key: only the reservations of the claims of this minute, day and
/// month.
pub async fn a_standing_shows_every_counter_in_the_window_of_now(stores: &dyn Stores) {
    let keys = stores.keys().unwrap();
    let spend = SpendLimit { micros: Micros::new(1_000), window: SpendWindow::Month };
    let limits = Limits {
        requests_per_minute: Some(9),
        tokens_per_minute: Some(900),
        concurrency: Some(9),
        spend: Some(spend),
    };
    let read = async |api_key| {
        let standing = keys.counters(api_key).await.unwrap();
        Counter::ALL.map(|counter| standing.counters.used(counter))
    };
    let (fresh, used) = in_one_minute(stores, async || {
        let tenant = Tenant::new(stores, 10_000).await;
        let other = tenant.another_api_key().await;
        let claim = tenant.claim().limits(limits).hold(30).tokens(7).build();
        let first = tenant.admit(&claim).await;
        tenant.admit(&tenant.claim().limits(limits).hold(40).tokens(8).build()).await;
        // An ending in another window of the same counters.
        let settled = judged(&tenant.load(first.id).await, finish(&first, 900, 0));
        let late = Transition {
            admitted_at: Some(Timestamp::from_micros(1)),
            ..operation_change(&settled).clone()
        };
        stores.journal().commit(Arc::new(late)).await.unwrap();
        (read(other).await, read(tenant.api_key).await)
    })
    .await;
    assert_eq!(fresh, [Some(0); 6]);
    assert_eq!(used, [2, 15, 1, 0, 0, 70].map(Some));
    assert_eq!(read(sample::fresh()).await, [Some(0); 6]);
}

/// A wallet is empty when it is made, and found and listed as it was made.
pub async fn wallets_are_found_and_listed(stores: &dyn Stores) {
    let mut made = Vec::new();
    for currency in ["USD", "EUR"] {
        let (id, name, currency) = (sample::fresh(), name("wallet"), currency.parse().unwrap());
        let created = stores.commands().create_wallet(id, &name, currency).await.unwrap();
        assert_eq!(created.things, [ResourceId::Wallet(id)]);
        let wallet = stores.wallets().find(id).await.unwrap().unwrap();
        assert_eq!((wallet.id, &wallet.name, wallet.currency), (id, &name, currency));
        assert_eq!((wallet.available, wallet.held), (Micros::ZERO, Micros::ZERO));
        assert_eq!(stores.wallets().transfers(id, 9).await.unwrap(), []);
        made.push(wallet);
    }
    assert_eq!(stores.lists().unwrap().all_wallets().await, made, "oldest first");
    assert_eq!(stores.wallets().find(sample::fresh()).await.unwrap(), None);
}

/// Neither a name nor an id is given twice, at once or later.
pub async fn names_of_wallets_are_taken_once(stores: &dyn Stores) {
    let commands = stores.commands();
    let (id, name) = (sample::fresh::<WalletId>(), name("wallet"));
    commands.create_wallet(id, &name, sample::usd()).await.unwrap();
    let wallet = stores.wallets().find(id).await.unwrap();
    let other = self::name("wallet");
    for (id, name, is_told) in [(sample::fresh(), &name, true), (id, &other, false)] {
        let refused = commands.create_wallet(id, name, sample::usd()).await;
        let is_name = matches!(&refused, Err(Refused(AccountRefusal::NameTaken(_))));
        assert!(refused.is_err() && is_name == is_told, "{refused:?}");
    }
    let creates = (0..5).map(|_| commands.create_wallet(sample::fresh(), &other, sample::usd()));
    let created = join_all(creates).await;
    assert_eq!(created.iter().filter(|created| created.is_ok()).count(), 1, "{created:?}");
    let listed = stores.lists().unwrap().all_wallets().await;
    assert_eq!((listed.len(), listed.first()), (2, wallet.as_ref()));
}

/// The same numbers may be pinned again; others under a known name are refused, and with them
/// everything that was to be pinned together.
pub async fn prices_never_change(stores: &dyn Stores) {
    let first = sample::priced("2026-03-01T00:00:00Z", 1_000);
    let second = sample::priced("2026-04-01T00:00:00Z", 2_000);
    stores.prices().unwrap().pin(std::slice::from_ref(&first)).await.unwrap();
    let dearer = sample::priced("2026-03-01T00:00:00Z", 1_001);
    let refused = stores.prices().unwrap().pin(&[second, dearer]).await;
    assert!(matches!(&refused, Err(PinError::Conflict(id)) if *id == first.id), "{refused:?}");
    // The second was not pinned: its name is free for other numbers.
    let other_second = sample::priced("2026-04-01T00:00:00Z", 3_000);
    stores.prices().unwrap().pin(&[first.clone(), other_second.clone()]).await.unwrap();
    stores.prices().unwrap().pin(&[other_second, first]).await.unwrap();
    // Tiers are numbers, too.
    let tiered = sample::tiered("2026-05-01T00:00:00Z", 1_000);
    stores.prices().unwrap().pin(std::slice::from_ref(&tiered)).await.unwrap();
    stores.prices().unwrap().pin(std::slice::from_ref(&tiered)).await.unwrap();
    let flat = sample::priced("2026-05-01T00:00:00Z", 1_000);
    assert_eq!((&flat.id, flat.tariff.rates()), (&tiered.id, tiered.tariff.rates()));
    let refused = stores.prices().unwrap().pin(&[flat]).await;
    assert!(matches!(&refused, Err(PinError::Conflict(id)) if *id == tiered.id), "{refused:?}");
}

/// Prices under a known name are those that are known: a claim with other ones is stopped.
pub async fn a_claim_does_not_change_a_known_price(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    tenant.admit(&tenant.claim().build()).await;
    let dearer = sample::priced("2026-01-01T00:00:00Z", 2_000_000);
    assert_eq!(dearer.id, sample::price().id);
    let claim = tenant.claim().price(dearer).build();
    let id = OperationId::of(claim.api_key, claim.request_key);
    let refused = tenant.offer(&claim).await;
    assert!(matches!(refused, Err(CommitError::Collision)), "{refused:?}");
    assert_eq!(tenant.load(id).await.operation, None);
    assert_eq!(tenant.balances().await, (900, 100));
}

/// Issues a key and reads it again by its credential.
async fn issue(stores: &dyn Stores, new: &NewApiKey, credential: &Credential) -> ApiKey {
    let issued = stores.commands().issue(new, credential).await.unwrap();
    assert_eq!(issued.things, [ResourceId::ApiKey(new.id)]);
    let key = stores.keys().unwrap().credential(credential.id).await.unwrap().unwrap().api_key;
    assert_eq!((key.id, key.wallet, key.created_at), (new.id, new.wallet, issued.at));
    key
}

fn new_key(wallet: WalletId, name: &str) -> NewApiKey {
    let id: ApiKeyId = sample::fresh();
    NewApiKey { id, wallet, name: name.to_owned(), external_id: None, grant: Grant::default() }
}

fn name(kind: &str) -> String {
    format!("{kind}-{}", Uuid::new_v4().simple())
}

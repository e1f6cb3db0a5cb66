//! Bounds on what one wallet and one key have, counted in the transaction of what is made.

use std::time::Duration;

use holdfast_accounts::{Accounts, AccountsError, NewInvitation, Principal, Request};
use holdfast_domain::admin::Jobs as _;
use holdfast_domain::admin::job::{JobEnding, JobState, JobStep};
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountReceipt, AccountRefusal, ActorId, AdminCredential,
    AdminKey, AdminKeyAction, ApiKeyAction, Authority, BoundedKind, JobAction, Reach, Role,
    WalletBounds,
};
use holdfast_domain::credential::{CREDENTIALS_MAX, Credential, Grant};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::NewApiKey;
use holdfast_domain::{
    AdminKeyId, ApiKeyId, CommandKey, JobId, Journal as _, NodeName, Timestamp, WalletId,
};
use holdfast_store::Store;
use holdfast_testkit::laws::tenant::credential;
use holdfast_testkit::{NoPause, sample};

use crate::administration::{act, administer, command, key, make_wallet, secret};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

const SMALL: WalletBounds = WalletBounds { api_keys: 3, people: 2, webhooks: 2, admin_keys: 2 };

type Outcome = Result<AccountReceipt, AccountRefusal>;

async fn bounded(store: &Store, action: AccountAction) -> Outcome {
    administer(store, &AccountCommand { bounds: SMALL, ..command(key(), action) }).await
}

fn keys(wallet: WalletId, count: usize, ends_at: Option<Timestamp>) -> AccountAction {
    let new = || {
        let id: ApiKeyId = sample::fresh();
        let grant = Grant { ends_at, ..Grant::default() };
        let name = format!("key {id}");
        (NewApiKey { id, wallet, name, external_id: None, grant }, credential(id))
    };
    let keys: Vec<(NewApiKey, Credential)> = (0..count).map(|_| new()).collect();
    AccountAction::ApiKey(ApiKeyAction::Issue { wallet, keys, is_bounded: false })
}

fn first_key(action: &AccountAction) -> ApiKeyId {
    let AccountAction::ApiKey(ApiKeyAction::Issue { keys, .. }) = action else {
        return sample::fresh();
    };
    keys[0].0.id
}

async fn a_wallet_has_so_many_api_keys_in_force(home: &impl Home) {
    let store = home.store();
    let (wallet, other) = (make_wallet(store, "one").await, make_wallet(store, "other").await);
    let full = Err(AccountRefusal::BoundReached { kind: BoundedKind::ApiKeys, bound: 3 });
    let first = keys(wallet, 2, None);
    bounded(store, first.clone()).await.unwrap();
    assert_eq!(bounded(store, keys(wallet, 2, None)).await, full, "all or none");
    let soon = store.clock().await.unwrap().after(Duration::from_secs(3_600));
    bounded(store, keys(wallet, 1, Some(soon))).await.unwrap();
    assert_eq!(bounded(store, keys(wallet, 1, None)).await, full);
    bounded(store, keys(other, 3, None)).await.unwrap();
    // Neither a revoked key counts, nor one whose end has come.
    act(store, AccountAction::ApiKey(ApiKeyAction::Revoke(first_key(&first)))).await.unwrap();
    bounded(store, keys(wallet, 1, None)).await.unwrap();
    assert_eq!(bounded(store, keys(wallet, 1, None)).await, full);
    Raw::open(home).await.run("UPDATE api_keys SET ends_at = 1 WHERE ends_at IS NOT NULL").await;
    bounded(store, keys(wallet, 1, None)).await.unwrap();
    assert_eq!(bounded(store, keys(wallet, 1, None)).await, full);
    // A bound that was lowered ends nothing.
    let wide = command(key(), keys(wallet, 2, None));
    administer(store, &wide).await.unwrap();
    assert_eq!(bounded(store, keys(wallet, 1, None)).await, full);
    assert_eq!(
        administer(store, &AccountCommand { bounds: SMALL, ..wide }).await.map(drop),
        Ok(())
    );
}

fn admin_key(name: &str, reach: Reach) -> (AdminKeyId, AccountAction) {
    let id = sample::fresh();
    let admin_key = AdminKey {
        id,
        name: name.to_owned(),
        role: if reach == Reach::All { Role::Owner } else { Role::HolderAdmin },
        reach,
        ends_at: None,
        created_at: Timestamp::from_micros(0),
        created_by: ActorId::Local,
        revoked_at: None,
    };
    (id, AccountAction::AdminKey(AdminKeyAction::Issue(admin_key, admin_credential(id))))
}

fn admin_credential(admin_key: AdminKeyId) -> AdminCredential {
    AdminCredential {
        id: sample::fresh(),
        admin_key,
        verifier: credential(sample::fresh()).verifier,
        server_secret: secret().id(),
        ends_at: None,
    }
}

async fn a_wallet_has_so_many_admin_keys_in_force(home: &impl Home) {
    let store = home.store();
    let wallet = Reach::Wallet(make_wallet(store, "one").await);
    let mut made = Vec::new();
    for name in ["a", "b"] {
        let (id, action) = admin_key(name, wallet);
        bounded(store, action).await.unwrap();
        made.push(id);
    }
    let full = Err(AccountRefusal::BoundReached { kind: BoundedKind::AdminKeys, bound: 2 });
    assert_eq!(bounded(store, admin_key("c", wallet).1).await, full);
    for name in ["d", "e", "f"] {
        bounded(store, admin_key(name, Reach::All).1).await.unwrap();
    }
    act(store, AccountAction::AdminKey(AdminKeyAction::Revoke(made[0]))).await.unwrap();
    bounded(store, admin_key("c", wallet).1).await.unwrap();
}

async fn a_wallet_has_so_many_people(home: &impl Home) {
    let store = home.store();
    let (one, other) = (make_wallet(store, "one").await, make_wallet(store, "other").await);
    let again = std::sync::Arc::new(home.again().await);
    let accounts = Accounts::new(again, [secret()], std::sync::Arc::new(NoPause));
    let accounts = accounts.bounded_by(SMALL, 1_000);
    let local = Principal::local();
    let invite = async |email: &str, role, wallet| {
        let new = NewInvitation {
            email: email.parse().unwrap(),
            name: None,
            role,
            reach: Reach::Wallet(wallet),
        };
        let request = Request::new(sample::fresh::<CommandKey>(), &[b"an invitation"], None);
        accounts.invite_person(&local, &request, &new).await.map(|it| it.thing.person)
    };
    let is_full = |done: Result<_, AccountsError>| {
        matches!(done, Err(AccountsError::Refused(AccountRefusal::BoundReached { .. })))
    };
    let ada = invite("ada@example.com", Role::HolderAdmin, one).await.unwrap();
    invite("bob@example.com", Role::HolderViewer, one).await.unwrap();
    assert!(is_full(invite("eve@example.com", Role::HolderViewer, one).await));
    // Another offer to somebody who is counted already, and another wallet.
    invite("ada@example.com", Role::HolderViewer, one).await.unwrap();
    invite("eve@example.com", Role::HolderViewer, other).await.unwrap();
    let offered = Authority { role: Role::HolderViewer, reach: Reach::Wallet(one) };
    let request = Request::new(sample::fresh::<CommandKey>(), &[b"an end"], None);
    accounts.end_grant(&local, &request, ada, offered).await.unwrap();
    invite("zoe@example.com", Role::HolderViewer, one).await.unwrap();
    assert!(is_full(invite("max@example.com", Role::HolderViewer, one).await));
}

async fn a_key_has_so_many_credentials_in_force(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "one").await;
    let issued = keys(wallet, 1, None);
    let api_key = first_key(&issued);
    act(store, issued).await.unwrap();
    let (owner, owners) = admin_key("owner", Reach::All);
    act(store, owners).await.unwrap();
    let rotate = async |grace: u64| {
        let grace = Duration::from_secs(grace);
        let credential = credential(api_key);
        let own = AccountAction::ApiKey(ApiKeyAction::Rotate {
            credential,
            wallet,
            is_bounded: false,
            grace,
        });
        let admins = AccountAction::AdminKey(AdminKeyAction::Rotate {
            credential: admin_credential(owner),
            grace,
        });
        let (own, admins) = (act(store, own).await, act(store, admins).await);
        assert_eq!(own.is_ok(), admins.is_ok(), "{own:?} {admins:?}");
        own.map(drop)
    };
    for _ in 1..CREDENTIALS_MAX {
        rotate(3_600).await.unwrap();
    }
    assert_eq!(rotate(3_600).await, Err(AccountRefusal::TooManyCredentials));
    // Those that end make room, at once or by themselves.
    for table in ["credentials", "admin_credentials"] {
        let past = format!("UPDATE {table} SET ends_at = 1 WHERE ends_at IS NOT NULL");
        Raw::open(home).await.run(&past).await;
    }
    rotate(3_600).await.unwrap();
    for _ in 2..CREDENTIALS_MAX {
        rotate(3_600).await.unwrap();
    }
    assert_eq!(rotate(1).await, Err(AccountRefusal::TooManyCredentials));
    rotate(0).await.unwrap();
    rotate(3_600).await.unwrap();
}

fn start(job: JobId) -> AccountAction {
    AccountAction::Job(JobAction::Start { job, kind: "verification", since: None })
}

fn by(actor: u128, action: AccountAction) -> AccountCommand {
    let actor = ActorId::AdminKey(AdminKeyId::from_u128(actor));
    AccountCommand { actor, ..command(key(), action) }
}

async fn an_actor_has_one_job_that_has_not_ended(home: &impl Home) {
    let store = home.store();
    let ids: [JobId; 3] = [(); 3].map(|()| sample::fresh());
    let first = by(1, start(ids[0]));
    administer(store, &first).await.unwrap();
    assert_eq!(store.job(ids[0]).await.unwrap().unwrap().state, JobState::Queued);
    let pending = Err(AccountRefusal::JobPending(ids[0]));
    assert_eq!(administer(store, &by(1, start(ids[1]))).await, pending);
    assert!(administer(store, &first).await.unwrap().replayed, "a repetition is answered");
    administer(store, &by(2, start(ids[2]))).await.unwrap();
    let name = NodeName::try_from("one").unwrap();
    let node = Node { name, incarnation: sample::fresh() };
    let claimed = store.claim(&node, Duration::from_secs(60)).await.unwrap().unwrap();
    assert_eq!(claimed.id, ids[0]);
    assert_eq!(administer(store, &by(1, start(ids[1]))).await, pending, "it runs");
    let cancel = administer(store, &by(1, AccountAction::Job(JobAction::Cancel(ids[0])))).await;
    assert_eq!(cancel, Err(AccountRefusal::JobStarted));
    store.finish(ids[0], &node, &JobStep::default(), JobEnding::Done).await.unwrap();
    administer(store, &by(1, start(ids[1]))).await.unwrap();
}

async fn a_queued_job_is_cancelled_and_never_done(home: &impl Home) {
    let store = home.store();
    let id: JobId = sample::fresh();
    administer(store, &by(1, start(id))).await.unwrap();
    let cancel = AccountAction::Job(JobAction::Cancel(id));
    administer(store, &by(1, cancel.clone())).await.unwrap();
    let job = store.job(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.started_at), (JobState::Cancelled, None));
    assert!(job.finished_at.is_some());
    administer(store, &by(1, cancel)).await.unwrap();
    let name = NodeName::try_from("one").unwrap();
    let node = Node { name, incarnation: sample::fresh() };
    assert_eq!(store.claim(&node, Duration::from_secs(60)).await.unwrap(), None);
    administer(store, &by(1, start(sample::fresh()))).await.unwrap();
    let unknown = AccountAction::Job(JobAction::Cancel(sample::fresh()));
    assert_eq!(act(store, unknown).await, Err(AccountRefusal::NoJob));
    let mut raw = Raw::open(home).await;
    let told = "SELECT count(*) FROM audit WHERE thing_kind = 'job' AND changes LIKE '%cancelled%'";
    assert_eq!(raw.number(told).await, 1);
}

on_every_store! {
    a_wallet_has_so_many_api_keys_in_force,
    a_wallet_has_so_many_admin_keys_in_force,
    a_wallet_has_so_many_people,
    a_key_has_so_many_credentials_in_force,
    an_actor_has_one_job_that_has_not_ended,
    a_queued_job_is_cancelled_and_never_done,
}

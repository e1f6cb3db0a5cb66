//! Two processes on one server at once, on one wallet, on a thousand, and on both: nothing locks each
//! other out for good, nothing is lost, and the book is in order.

use futures_util::stream::{self, StreamExt};
use holdfast_domain::{ApiKeyId, Journal, OperationId, WalletId};
use holdfast_store::Store;
use holdfast_testkit::laws::tenant::{Tenant, finish, judged};
use holdfast_testkit::sample;
use sqlx::{AssertSqlSafe, Executor};

use crate::server::Server;

const WALLETS: u128 = 1_000;
const OPERATIONS: usize = 1_200;
/// Requests that wait at once.
const AT_ONCE: usize = 256;
const FUNDS: i64 = 1_000_000;

/// Wallets with these numbers and an API key each, all with funds.
async fn furnish(server: &Server) {
    let id = "decode(lpad(to_hex(n), 32, '0'), 'hex')";
    let from = format!("FROM generate_series(1, {WALLETS}) AS n");
    let sql = format!(
        "INSERT INTO wallets (id, name, currency, available, held, created_at)
         SELECT {id}, 'wallet-' || n, 'USD', {FUNDS}, 0, 1 {from};
         INSERT INTO postings (id, wallet_id, kind, amount, created_at)
         SELECT {id}, {id}, 'deposit', {FUNDS}, 1 {from};
         INSERT INTO api_keys (id, wallet_id, name, balance, created_at)
         SELECT {id}, {id}, 'key-' || n, 'shown', 1 {from}"
    );
    server.database.connect().await.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// One of a thousand, far from the one before. Both processes come to it at once.
fn far(n: usize) -> u128 {
    1 + u128::try_from(n / 2).unwrap() * 389 % WALLETS
}

/// One operation from its claim to its end, on whatever store.
async fn live(tenant: &Tenant<'_>, stores: [&Store; 2]) {
    let claim = tenant.claim().build();
    stores[0].commit(sample::admission(&claim)).await.unwrap();
    let id = OperationId::of(claim.api_key, claim.request_key);
    let snapshot = stores[1].load(id).await.unwrap();
    let operation = snapshot.operation.clone().unwrap();
    stores[1].commit(judged(&snapshot, finish(&operation, 10, 10))).await.unwrap();
}

/// `wallet_of` says whose each operation is.
async fn heat(wallet_of: fn(usize) -> u128) {
    let server = Server::open().await;
    // Found at once, not after the time that the server gives a lock to come free by itself.
    server.database.set("deadlock_timeout = '5ms'").await;
    furnish(&server).await;
    let stores = [server.database.open().await.unwrap(), server.database.open().await.unwrap()];
    let somebody = Tenant::new(&server, 0).await;
    let operations = stream::iter(0..OPERATIONS).for_each_concurrent(AT_ONCE, |n| {
        let (wallet, stores) = (wallet_of(n), &stores);
        let tenant = Tenant {
            stores: &server,
            wallet: WalletId::from_u128(wallet),
            api_key: ApiKeyId::from_u128(wallet),
            credential: somebody.credential,
            lease: somebody.lease.clone(),
        };
        async move { live(&tenant, [&stores[n % 2], &stores[n / 2 % 2]]).await }
    });
    operations.await;
    let found = server.store.verify().await.unwrap();
    assert_eq!(
        (found.mismatches, found.operations),
        (Vec::new(), u64::try_from(OPERATIONS).unwrap())
    );
    let [one, other] = stores;
    one.close().await.unwrap();
    other.close().await.unwrap();
    // A connection tells what it has counted when it ends.
    let counted = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let mut raw = server.database.connect().await;
    let deadlocks: i64 = sqlx::query_scalar(counted).fetch_one(&mut raw).await.unwrap();
    assert_eq!(deadlocks, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_two_processes_on_one_hot_wallet() {
    heat(|_| 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_two_processes_on_a_thousand_wallets() {
    heat(far).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_two_processes_on_a_hot_wallet_and_a_thousand_others() {
    heat(|n| if n % 4 < 2 { 1 } else { far(n) }).await;
}

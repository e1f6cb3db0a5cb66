//! Edits of the limits of one API key with 10^6 operations, of which one of a thousand is open: how long the other
//! writes of its wallet wait meanwhile.

use std::time::{Duration, Instant};

use holdfast_domain::admin::{AccountAction, ApiKeyAction, ApiKeyPatch};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::limits::{CountLimit, SpendLimit, SpendWindow};
use holdfast_domain::{ApiKeyId, Micros, WalletId};
use holdfast_store::Store;
use holdfast_testkit::{Commands as _, sample};
use tokio::sync::watch;

use crate::book::{Book, OPERATIONS, id};
use crate::say;

const WALLET: i64 = 900;
const KEY: i64 = 9_000;
/// Longest time for which an edit may keep the lock of the wallet.
const LOCK: Duration = Duration::from_millis(50);

/// Edits limits; what takes too long.
pub(crate) async fn edit(book: &mut Book) -> Vec<String> {
    book.insert_key_of_all(WALLET, KEY).await;
    let wallet = WalletId::from_bytes(id('w', WALLET));
    let alone = waits(&book.store, wallet, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
    });
    let (_done, mut alone) = alone.await;
    alone.sort_unstable();
    let (middle, most) = (alone[alone.len() / 2], alone[alone.len() - 1]);
    say(&format!(
        "edits of limits of {OPERATIONS} operations; a deposit without one: {middle:.1?}, at most {most:.1?}"
    ));
    let mut locks = Vec::new();
    for window in [SpendWindow::Total, SpendWindow::Month, SpendWindow::Day, SpendWindow::Total] {
        let patch = ApiKeyPatch {
            spend: Some(Some(SpendLimit { micros: Micros::new(1), window })),
            counts: CountLimit::ALL.into_iter().map(|limit| (limit, Some(9))).collect(),
            ..ApiKeyPatch::default()
        };
        let edit = AccountAction::ApiKey(ApiKeyAction::Edit {
            api_key: ApiKeyId::from_bytes(id('k', KEY)),
            wallet,
            patch,
            expected: None,
            is_bounded: false,
        });
        let begun = Instant::now();
        let (took, waits) = waits(&book.store, wallet, async {
            book.administer(edit).await;
            begun.elapsed()
        })
        .await;
        let Some(most) = waits.into_iter().max() else {
            return vec![format!("an edit to {window:?} without a deposit meanwhile")];
        };
        say(&format!("  to {window:?}: {took:.1?}, a deposit meanwhile at most {most:.1?}"));
        locks.push(most.saturating_sub(middle));
    }
    let used = "SELECT CAST(max(c.used) AS bigint) FROM counters AS c WHERE c.counter = 3";
    let sum = "SELECT CAST(sum(o.charge) AS bigint) FROM operations AS o WHERE o.seq > 1000000";
    let (used, sum) = (book.number(used).await, book.number(sum).await);
    let wrong = (used != sum).then(|| format!("counters as their rows: {used}, not {sum}"));
    // Of several: a disk that is busy with something else delays one.
    locks.sort_unstable();
    let lock = locks[locks.len() / 2];
    let slow = (lock > LOCK).then(|| format!("the lock of an edit for {LOCK:?}: {lock:.1?}"));
    wrong.into_iter().chain(slow).collect()
}

/// Waits of deposits, one after the other, while something is done.
async fn waits<T>(
    store: &Store,
    wallet: WalletId,
    work: impl Future<Output = T>,
) -> (T, Vec<Duration>) {
    let (done, is_done) = watch::channel(false);
    let deposits = async {
        let mut waits = Vec::new();
        while !*is_done.borrow() {
            let posting =
                Posting::new(sample::fresh(), wallet, PostingKind::Deposit, Micros::new(1));
            let begun = Instant::now();
            store.post(&posting.unwrap()).await.unwrap();
            waits.push(begun.elapsed());
        }
        waits
    };
    let work = async {
        let value = work.await;
        done.send_replace(true);
        value
    };
    tokio::join!(work, deposits)
}

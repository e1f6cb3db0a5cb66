//! Commands of administration that wait: so many and no more, and what is certain when one is cut off.

use std::task::Poll;
use std::time::Duration;

use futures_util::future::join;
use futures_util::poll;
use holdfast_domain::PostingId;
use holdfast_domain::admin::Administration as _;
use holdfast_domain::admin::ports::CommandError;
use holdfast_store::{Options, Store};
use holdfast_testkit::laws::tenant::Tenant;
use sqlx::Executor as _;

use crate::administration::{available, command, deposit, key, make_wallet, secret};
use crate::proxy::{Cut, Proxy};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};
use crate::server::Server;
use crate::silence::until_waiting;

/// Commands that wait in a process at most.
const WAITING_MAX: i64 = 16;

async fn a_command_beyond_those_that_may_wait_is_refused_at_once(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let mut raw = Raw::open(home).await;
    raw.run(match &raw {
        Raw::File(_) => "BEGIN IMMEDIATE",
        Raw::Server(_) => "BEGIN; SELECT 1 FROM audit_head FOR UPDATE",
    })
    .await;
    let commands: Vec<_> = (0..=WAITING_MAX)
        .map(|_| {
            let request = key();
            command(request, deposit(PostingId::from_bytes(request.to_bytes()), wallet, 1))
        })
        .collect();
    let (last, first) = commands.split_last().unwrap();
    let secret = secret();
    let mut waiting: Vec<_> = first.iter().map(|it| store.administer(it, &secret)).collect();
    for command in &mut waiting {
        assert!(matches!(poll!(command.as_mut()), Poll::Pending));
    }
    let refused = store.administer(last, &secret).await;
    assert!(matches!(&refused, Err(CommandError::Unavailable(_))), "{refused:?}");
    raw.run("ROLLBACK").await;
    for command in waiting {
        assert!(!command.await.unwrap().replayed);
    }
    // There is room again, and nothing of the refused one was bound.
    assert!(!store.administer(last, &secret).await.unwrap().replayed);
    assert_eq!(available(store, wallet).await, WAITING_MAX + 1);
}

on_every_store! {
    a_command_beyond_those_that_may_wait_is_refused_at_once,
}

#[tokio::test]
async fn postgres_only_what_was_cut_off_at_its_commit_is_uncertain() {
    let server = Server::open().await;
    let proxy = Proxy::of(&server.database);
    let store = Store::open(Options::new(proxy.url())).await.unwrap();
    // Through another store: the first cut looks for a text, which a connection sends once.
    let wallet = make_wallet(&server.store, "acme").await;
    let secret = secret();
    let mut deposits = 0;
    for at in [Cut::Head, Cut::Commit, Cut::Answer] {
        let request = key();
        let command =
            command(request, deposit(PostingId::from_bytes(request.to_bytes()), wallet, 1));
        proxy.cut(at);
        let done = store.administer(&command, &secret).await;
        assert!(proxy.has_cut(), "{at:?}");
        if at == Cut::Head {
            // Said at once, and not after offers that each wait for a server that may be gone.
            assert!(matches!(&done, Err(CommandError::Unavailable(_))), "{done:?}");
            assert!(!store.administer(&command, &secret).await.unwrap().replayed);
        } else {
            // Looked up by its request key, and offered again where it was free.
            assert!(!done.unwrap().replayed, "{at:?}");
        }
        deposits += 1;
        assert_eq!(available(&store, wallet).await, deposits, "{at:?}: once");
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn postgres_a_batch_that_notes_later_generations_and_a_step_of_the_summing_do_not_lock_each_other()
 {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 10_000).await;
    for _running in 0..2 {
        tenant.admit(&tenant.claim().build()).await;
    }
    let mut raw = server.database.connect().await;
    // As the trigger would, in the order in which a batch happens to update its rows.
    let note = |order: &str| {
        sqlx::AssertSqlSafe(format!(
            "INSERT INTO late_ends (op_seq) SELECT seq FROM operations ORDER BY seq {order} LIMIT 1
             ON CONFLICT DO NOTHING"
        ))
    };
    raw.execute("BEGIN").await.unwrap();
    raw.execute(note("DESC")).await.unwrap();
    let summing = server.store.sum_usage_older_than(Duration::ZERO);
    let batch = async {
        let mut other = server.database.connect().await;
        until_waiting(&mut other, 1).await;
        raw.execute(note("ASC")).await.unwrap();
        raw.execute("COMMIT").await.unwrap();
    };
    let (summed, ()) = join(summing, batch).await;
    summed.unwrap();
    assert_eq!(server.store.verify().await.unwrap().mismatches, []);
}

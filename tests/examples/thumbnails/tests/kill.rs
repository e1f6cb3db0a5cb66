//! The example of the manual is killed at work and started again with the same key.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use holdfast_domain::admin::Directory as _;
use holdfast_domain::{Micros, Wallets as _};
use holdfast_store::{DatabaseUrl, Options, Store};

/// Starts the example over this database and picture.
fn start(database: &str, picture: &Path) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_thumbnails"));
    program.arg(database).arg(picture).stdout(Stdio::piped()).spawn().unwrap()
}

/// Output of the example, which comes to its end.
fn run(database: &str, picture: &Path) -> String {
    let ended = start(database, picture).wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

/// Kinds of the wallet's transfers and the available amount, in a book that an audit finds in order.
async fn book(database: &str) -> (Vec<&'static str>, Micros) {
    let store = Store::open(Options::new(DatabaseUrl::parse(database).unwrap())).await.unwrap();
    let wallet = store.wallet_named("acme").await.unwrap().unwrap().wallet;
    let transfers = store.transfers(wallet.id, u32::MAX).await.unwrap();
    let audit = store.verify().await.unwrap();
    assert!(audit.mismatches.is_empty(), "{:?}", audit.mismatches);
    assert_eq!(wallet.held, Micros::ZERO);
    store.close().await.unwrap();
    (transfers.into_iter().map(|transfer| transfer.kind).collect(), wallet.available)
}

#[tokio::test]
async fn a_sale_that_is_killed_at_work_has_one_hold_and_one_run_and_no_charge() {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", folder.path().join("shop.db").display());
    let picture = folder.path().join("cat.png");
    // Reading it waits for a writer, and opening it to write waits for the reader: the work has begun.
    assert!(Command::new("mkfifo").arg(&picture).status().unwrap().success());
    let mut child = start(&database, &picture);
    let writer = OpenOptions::new().write(true).open(&picture).unwrap();
    child.kill().unwrap();
    let killed = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(killed.stdout).unwrap(), "at work\n");
    drop(writer);

    // Perhaps the first had run: whoever asks again is told so, and nothing runs.
    for _again in 0..2 {
        assert_eq!(run(&database, &picture), "Lost\n");
    }
    let (transfers, available) = book(&database).await;
    assert_eq!(transfers, ["deposit", "hold", "lapse"]);
    assert_eq!(available, Micros::new(10_000_000));
}

#[tokio::test]
async fn a_sale_is_answered_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", folder.path().join("shop.db").display());
    let picture = folder.path().join("cat.png");
    fs::write(&picture, [7; 65]).unwrap();
    let first = run(&database, &picture);
    let sold = "Sold { answer_bytes: Some(2), charge: Micros(2000), is_new: true }";
    assert_eq!(first, format!("at work\n{sold}\n"));
    let again = run(&database, &picture);
    assert_eq!(again, first.replace("at work\n", "").replace("true", "false"));
    // Another request under the key is a conflict, and nothing runs.
    let other = folder.path().join("dog.png");
    fs::write(&other, [8; 65]).unwrap();
    assert_eq!(run(&database, &other), "OtherRequest\n");
    let (transfers, available) = book(&database).await;
    assert_eq!(transfers, ["deposit", "hold", "settle"]);
    assert_eq!(available, Micros::new(9_998_000));
}

//! Roots of the ledger: each row that has ended is in exactly one of them, and the audit finds a row that was changed,
//! removed or added since.

use std::time::Duration;

use holdfast_domain::admin::LedgerRoots as _;
use holdfast_domain::admin::listing::{Order, PageRequest};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{Micros, Operation, Timestamp};
use holdfast_receipts::DocumentKind;
use holdfast_receipts::charge::Charge;
use holdfast_receipts::key::Signer;
use holdfast_receipts::tree::TreeHash;
use holdfast_receipts::verification::{TrustedKeys, check_inclusion};
use holdfast_store::RootBounds;
use holdfast_store::verify::AuditOptions;
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, refuse};
use serde_json::{Value, json};

use crate::raw::Raw;
use crate::scratch::Home;

fn secret() -> ServerSecret {
    ServerSecret::new(&[7; 32]).unwrap()
}

fn signer() -> Signer {
    Signer::new(&secret().receipt_key(), &[], &[]).unwrap()
}

/// Signs all that there is until now.
async fn sign(home: &impl Home) -> bool {
    let now = holdfast_domain::Journal::clock(home.store()).await.unwrap();
    // After the root before it, on a clock of milliseconds, too.
    let last = "SELECT coalesce(max(ends_at), 0) FROM ledger_roots";
    let last = Raw::open(home).await.number(last).await;
    let until = Timestamp::from_micros(now.as_micros().max(last) + 1);
    let bounds = RootBounds { until: Some(until), operations: i64::MAX };
    home.store().sign_root_within(&signer(), bounds).await.unwrap()
}

/// Sentences of the audit about roots.
async fn told(home: &impl Home) -> Vec<String> {
    let secrets = vec![secret()].into();
    let options = AuditOptions { secrets, ..AuditOptions::keeping(Duration::MAX) };
    let found = home.store().verify_by(options, |_progress| {}).await.unwrap().mismatches;
    let all = found.into_iter().map(|it| it.sentence);
    all.filter(|it| it.starts_with("its root")).collect()
}

/// Numbers of leaves of all roots.
async fn leaves(home: &impl Home) -> Vec<String> {
    let mut raw = Raw::open(home).await;
    let count = raw.number("SELECT count(*) FROM ledger_roots").await;
    let mut all = Vec::new();
    for number in 1..=count {
        let signed =
            raw.text(&format!("SELECT signed FROM ledger_roots WHERE seq = {number}")).await;
        let signed: Value = serde_json::from_str(&signed).unwrap();
        all.push(signed["root"]["leaves"].as_str().unwrap().to_owned());
    }
    all
}

/// Two operations that have ended, one that runs, and a deposit.
async fn begin<'a>(home: &'a impl Home) -> (Tenant<'a>, Operation) {
    let tenant = Tenant::new(home, 10_000).await;
    for end in [|o: &Operation| finish(o, 20, 10), refuse] {
        let operation = tenant.admit(&tenant.claim().build()).await;
        tenant.step(operation.id, end(&operation)).await;
    }
    let running = tenant.admit(&tenant.claim().build()).await;
    home.store().keep_receipt_keys(signer().keys().to_vec()).await.unwrap();
    (tenant, running)
}

async fn each_ended_row_is_in_one_root(home: &impl Home) {
    let (tenant, running) = begin(home).await;
    assert!(sign(home).await);
    assert_eq!(leaves(home).await, ["3"], "two operations and the deposit");
    // A later ending and a refund are in the next root, and change no earlier one.
    tenant.step(running.id, finish(&running, 5, 5)).await;
    tenant.post(PostingKind::Refund(running.id), 5).await.unwrap();
    let next = tenant.admit(&tenant.claim().build()).await;
    tenant.step(next.id, give_up(&next)).await;
    assert_eq!(told(home).await, Vec::<String>::new());
    assert!(sign(home).await);
    assert!(sign(home).await, "a root of no rows shows that there were none");
    assert_eq!(leaves(home).await, ["3", "3", "0"]);
    assert_eq!(told(home).await, Vec::<String>::new());
}

async fn a_long_history_has_several_roots(home: &impl Home) {
    let (_tenant, running) = begin(home).await;
    let until = Some(Timestamp::from_micros(i64::MAX - 1));
    let bounds = RootBounds { until, operations: 1 };
    let mut count = 0;
    while home.store().sign_root_within(&signer(), bounds).await.unwrap() {
        count += 1;
        assert_eq!(leaves(home).await.len(), count);
    }
    let sum = |leaves: Vec<String>| leaves.iter().map(|it| it.parse::<u32>().unwrap()).sum::<u32>();
    assert!(count >= 3, "{count} roots of three operations");
    assert_eq!(sum(leaves(home).await), 3, "two operations and the deposit, each once");
    assert_eq!(told(home).await, Vec::<String>::new());
    assert_eq!(home.store().inclusion(running.id).await.unwrap(), None, "it has not ended");
}

async fn a_proof_leads_from_an_operation_to_its_root(home: &impl Home) {
    let (tenant, running) = begin(home).await;
    let store = home.store();
    assert_eq!(store.inclusion(running.id).await.unwrap(), None);
    sign(home).await;
    assert_eq!(store.inclusion(running.id).await.unwrap(), None, "it has not ended");
    tenant.step(running.id, finish(&running, 5, 5)).await;
    assert_eq!(store.inclusion(running.id).await.unwrap(), None, "no root has its ending");
    let later = tenant.admit(&tenant.claim().build()).await;
    tenant.step(later.id, finish(&later, 7, 5)).await;
    sign(home).await;
    let trusted = TrustedKeys::of(signer().keys());
    for (operation, number) in [(running.id, 2), (later.id, 2)] {
        let proof = store.inclusion(operation).await.unwrap().unwrap();
        assert_eq!((proof.root.number, proof.operation), (number, operation));
        let path: Vec<Value> =
            proof.path.iter().map(|it| TreeHash::from_bytes(*it).to_string().into()).collect();
        let mut file: Value = serde_json::from_str(&proof.root.signed).unwrap();
        file["proof"] = json!({ "index": proof.index.to_string(), "path": path });
        let root = trusted.verify(DocumentKind::Root, &file).unwrap();
        let receipt =
            |row: &Operation| Charge::of(row).unwrap().receipt(Micros::ZERO, row.created_at);
        let row = tenant.load(operation).await.operation.unwrap();
        check_inclusion(&receipt(&row), root, &file).unwrap();
        let other = if operation == later.id { running.id } else { later.id };
        let other = tenant.load(other).await.operation.unwrap();
        assert!(check_inclusion(&receipt(&other), root, &file).is_err());
    }
    let page = |limit, after| PageRequest { order: Order::Newest, after, limit };
    let first = store.ledger_roots(page(1, None)).await.unwrap();
    assert_eq!(first.rows[0].number, 2);
    let second = store.ledger_roots(page(5, first.next)).await.unwrap();
    assert_eq!((second.rows[0].number, second.rows.len(), second.next), (1, 1, None));
}

async fn a_root_is_signed_once(home: &impl Home) {
    begin(home).await;
    let until = Some(Timestamp::from_micros(i64::MAX - 1));
    let all = RootBounds { until, operations: i64::MAX };
    let signed = signer();
    let (one, other) = tokio::join!(
        home.store().sign_root_within(&signed, all),
        home.store().sign_root_within(&signed, all)
    );
    assert_eq!([one.unwrap(), other.unwrap()].into_iter().filter(|it| *it).count(), 1);
    assert_eq!(leaves(home).await.len(), 1);
    assert!(!home.store().sign_root_within(&signed, all).await.unwrap());
}

async fn a_changed_missing_or_added_row_does_not_fit(home: &impl Home) {
    let (tenant, running) = begin(home).await;
    sign(home).await;
    tenant.step(running.id, finish(&running, 5, 5)).await;
    sign(home).await;
    let mut raw = Raw::reckless(home).await;
    let copy = "CREATE TABLE copies AS SELECT * FROM operations WHERE seq = 1";
    raw.run(copy).await;
    let (first, second) = ("its root 1 of", "its root 2 of");
    for (broken, mended, root) in [
        (
            "UPDATE operations SET charge = charge - 1, shortfall = shortfall + 1 WHERE seq = 1",
            "UPDATE operations SET charge = charge + 1, shortfall = shortfall - 1 WHERE seq = 1",
            first,
        ),
        (
            "UPDATE operations SET input = input + 1 WHERE seq = 3",
            "UPDATE operations SET input = input - 1 WHERE seq = 3",
            second,
        ),
        ("UPDATE prices SET input = input + 1", "UPDATE prices SET input = input - 1", first),
        (
            "UPDATE postings SET amount = amount + 1",
            "UPDATE postings SET amount = amount - 1",
            first,
        ),
        (
            "DELETE FROM operations WHERE seq = 1",
            "INSERT INTO operations SELECT * FROM copies",
            first,
        ),
        // Late endings move with their notes.
        ("UPDATE ledger_passed SET root = 1", "UPDATE ledger_passed SET root = 2", first),
        ("DELETE FROM ledger_passed", "INSERT INTO ledger_passed VALUES (3, 2)", second),
        (
            "UPDATE ledger_roots SET operations_to = 2 WHERE seq = 1",
            "UPDATE ledger_roots SET operations_to = 4 WHERE seq = 1",
            first,
        ),
        // The last one: a number below those of the roots was free.
        (
            "UPDATE copies SET seq = 0, id = randomblob(16); INSERT INTO operations SELECT * FROM copies",
            "",
            first,
        ),
    ] {
        assert_eq!(told(home).await, Vec::<String>::new(), "before {broken}");
        raw.run(broken).await;
        let told = told(home).await;
        let is_found = |it: &String| it.starts_with(root) && it.contains("does not fit");
        assert!(told.iter().any(is_found), "{broken}: {told:?}");
        if !mended.is_empty() {
            raw.run(mended).await;
        }
    }
}

async fn a_root_that_was_replaced_or_removed_is_found(home: &impl Home) {
    begin(home).await;
    for _root in 0..3 {
        assert!(sign(home).await);
    }
    let mut raw = Raw::reckless(home).await;
    let signed = raw.text("SELECT signed FROM ledger_roots WHERE seq = 1").await;
    for (broken, sentence) in [
        (signed.replace("\"leaves\":\"3\"", "\"leaves\":\"2\""), "is not genuine"),
        ("{}".to_owned(), "is not genuine"),
        ("no json".to_owned(), "cannot be read"),
    ] {
        raw.run(&format!("UPDATE ledger_roots SET signed = '{broken}' WHERE seq = 1")).await;
        let told = told(home).await;
        assert!(told.iter().any(|it| it.contains(sentence)), "{broken}: {told:?}");
    }
    raw.run(&format!("UPDATE ledger_roots SET signed = '{signed}' WHERE seq = 1")).await;
    assert_eq!(told(home).await, Vec::<String>::new());
    raw.run("DELETE FROM ledger_roots WHERE seq = 2").await;
    let options = AuditOptions::keeping(Duration::MAX);
    let found = home.store().verify_by(options, |_progress| {}).await.unwrap().mismatches;
    let sentences: Vec<_> = found.iter().map(|it| it.sentence.as_str()).collect();
    assert!(sentences.contains(&"its roots 2 to 2 are missing"), "{sentences:?}");
    assert!(sentences.iter().any(|it| it.contains("does not follow")), "{sentences:?}");
}

async fn keys_are_kept_after_their_secret(home: &impl Home) {
    let other = ServerSecret::new(&[8; 32]).unwrap().receipt_key();
    let newer = Signer::new(&other, &[], &[]).unwrap();
    let old = signer().keys().to_vec();
    assert_eq!(home.store().keep_receipt_keys(old.clone()).await.unwrap(), old);
    let both = [newer.keys(), &old[..]].concat();
    for _start in 0..2 {
        assert_eq!(home.store().keep_receipt_keys(newer.keys().to_vec()).await.unwrap(), both);
    }
}

crate::scratch::on_every_store! {
    each_ended_row_is_in_one_root,
    a_long_history_has_several_roots,
    a_proof_leads_from_an_operation_to_its_root,
    a_root_is_signed_once,
    a_changed_missing_or_added_row_does_not_fit,
    a_root_that_was_replaced_or_removed_is_found,
    keys_are_kept_after_their_secret,
}

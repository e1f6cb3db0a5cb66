//! One payment is one deposit: how references of deposits are compared, and what is refused of new ones.

use std::time::Duration;

use holdfast_domain::admin::Administration as _;
use holdfast_domain::admin::{
    AccountAction, AccountRefusal, ActorId, CanonicalDigest, DepositReference, NewPosting,
    PostingDetails, RequestBinding, ResourceId,
};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::{AdminKeyId, Currency, Micros, PostingId, WalletId};
use holdfast_store::verify::{AuditOptions, Subject};
use holdfast_testkit::sample;

use crate::administration::{act, administer, available, command, key, make_wallet, secret};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

fn payment(wallet: WalletId, amount: i64, source: &str, id: &str) -> AccountAction {
    let own = sample::fresh();
    let posting = Posting::new(own, wallet, PostingKind::Deposit, Micros::new(amount)).unwrap();
    let reference = Some(DepositReference::new(source, id));
    let details = PostingDetails { reference, ..PostingDetails::default() };
    AccountAction::Post(NewPosting { posting, details, allowance: None, currency: None })
}

fn id(action: &AccountAction) -> PostingId {
    if let AccountAction::Post(new) = action { Some(new.posting.id) } else { None }.unwrap()
}

fn in_currency(action: &AccountAction, code: &str) -> AccountAction {
    let mut action = action.clone();
    if let AccountAction::Post(new) = &mut action {
        new.currency = Some(code.parse::<Currency>().unwrap());
    }
    action
}

/// Gives the deposit of an id the reference that a version before has booked.
async fn respell(raw: &mut Raw, posting: PostingId, source: &str, reference: &str) {
    let id: String = posting.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let id = match raw {
        Raw::File(_) => format!("x'{id}'"),
        Raw::Server(_) => format!("'\\x{id}'"),
    };
    let sql = format!(
        "UPDATE posting_details SET source = '{source}', external_reference = '{reference}'
         WHERE posting_id = {id}"
    );
    raw.run(&sql).await;
}

async fn a_source_compares_in_lower_case(home: &impl Home) {
    let store = home.store();
    let (ours, theirs) = (make_wallet(store, "ours").await, make_wallet(store, "theirs").await);
    let made = act(store, payment(ours, 10, "Stripe", "pi_1")).await.unwrap();
    assert!(!made.replayed);
    for source in ["Stripe", "stripe", "STRIPE"] {
        let again = act(store, payment(ours, 10, source, "pi_1")).await.unwrap();
        assert_eq!((again.things, again.replayed), (made.things.clone(), true), "{source}");
        for other in [payment(ours, 11, source, "pi_1"), payment(theirs, 10, source, "pi_1")] {
            let known = PostingId::from_bytes(made.things[0].id());
            let refused = act(store, other).await;
            assert_eq!(refused, Err(AccountRefusal::ExternalReferenceConflict(known)), "{source}");
        }
    }
    // Ids of payments differ in the case of their letters, and sources in everything else.
    for (source, payment_id) in [("stripe", "PI_1"), ("stripe2", "pi_1")] {
        assert!(!act(store, payment(ours, 10, source, payment_id)).await.unwrap().replayed);
    }
    assert_eq!(available(store, ours).await, 30);
    // The same posting by another actor, who spells the source in another way.
    let first = payment(ours, 5, "Bank", "7");
    act(store, first.clone()).await.unwrap();
    let mut respelled = first.clone();
    if let AccountAction::Post(new) = &mut respelled {
        new.details.reference = Some(DepositReference::new("bank", "7"));
    }
    let mut other = command(key(), respelled);
    other.actor = ActorId::AdminKey(AdminKeyId::from_u128(3));
    let known = administer(store, &other).await.unwrap();
    assert_eq!((known.things, known.replayed), (vec![ResourceId::Posting(id(&first))], true));
}

async fn of_two_who_race_with_spellings_of_one_source_one_books(home: &impl Home) {
    let store = home.store().clone();
    let other = home.again().await;
    let wallet = make_wallet(&store, "acme").await;
    for round in 0..8_i64 {
        let reference = format!("pi_{round}");
        let commands =
            ["Stripe", "stripe"].map(|it| command(key(), payment(wallet, 10, it, &reference)));
        let secret = secret();
        let (one, two) = tokio::join!(
            store.administer(&commands[0], &secret),
            other.administer(&commands[1], &secret)
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_ne!(one.replayed, two.replayed, "one made it, and the other found it");
        assert_eq!(one.things, two.things);
        assert_eq!(available(&store, wallet).await, 10 * (round + 1));
    }
    other.close().await.unwrap();
}

async fn a_new_reference_is_visible_ascii_and_an_old_one_is_answered(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    for (source, reference, field) in [
        ("stripe inc", "pi_1", "source"),
        ("str\u{456}pe", "pi_1", "source"),
        ("stripe", "pi 1", "external_reference"),
        ("stripe", "pi\u{a0}1", "external_reference"),
        ("stripe", "p\u{456}_1", "external_reference"),
        ("stripe", "pi_1\u{301}", "external_reference"),
        ("stripe", "pi\t1", "external_reference"),
        ("stripe", "pi\u{7f}1", "external_reference"),
    ] {
        let refused = act(store, payment(wallet, 10, source, reference)).await;
        let expected = AccountRefusal::ReferenceNotAscii(field);
        assert_eq!(refused, Err(expected), "{source:?} {reference:?}");
    }
    act(store, payment(wallet, 1, "!~", "~!")).await.unwrap();
    // What a version before has booked is answered under its request key, under its id and under another key.
    let request = key();
    let made = payment(wallet, 10, "bank", "1");
    act(store, made.clone()).await.unwrap();
    let mut raw = Raw::reckless(home).await;
    respell(&mut raw, id(&made), "The Bank", "Überweisung 1").await;
    let mut old = made.clone();
    if let AccountAction::Post(new) = &mut old {
        new.details.reference = Some(DepositReference::new("The Bank", "Überweisung 1"));
    }
    let again = act(store, old).await.unwrap();
    assert_eq!(
        (again.things.clone(), again.replayed),
        (vec![ResourceId::Posting(id(&made))], true)
    );
    for source in ["The Bank", "the bank"] {
        let known = act(store, payment(wallet, 10, source, "Überweisung 1")).await.unwrap();
        assert_eq!((known.things, known.replayed), (again.things.clone(), true), "{source}");
    }
    let binding = command(request, payment(wallet, 10, "The Bank", "Überweisung 1"));
    assert!(administer(store, &binding).await.unwrap().replayed);
    // Bound: its body is not judged any more, whatever the currency.
    let mut other = binding.clone();
    other.action = in_currency(&payment(wallet, 10, "a b", "c d"), "EUR");
    assert!(administer(store, &other).await.unwrap().replayed, "the same digests");
    other.request.digest = [9; 32];
    other.request.canonical = Some(CanonicalDigest::new([9; 32]));
    assert_eq!(administer(store, &other).await, Err(AccountRefusal::RequestKeyConflict));
    assert_eq!(available(store, wallet).await, 11);
}

async fn an_amount_of_another_currency_is_refused(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let [usd, eur] = ["USD", "EUR"].map(|code| code.parse::<Currency>().unwrap());
    let mismatch = AccountRefusal::CurrencyMismatch { wallet: usd, named: eur };
    let first = payment(wallet, 10, "stripe", "pi_1");
    let posting = Posting::new(
        sample::fresh(),
        wallet,
        PostingKind::Adjustment("goodwill".to_owned()),
        Micros::new(4),
    );
    let adjustment = AccountAction::Post(NewPosting {
        posting: posting.unwrap(),
        details: PostingDetails::default(),
        allowance: None,
        currency: None,
    });
    for action in [&first, &adjustment] {
        let request = key();
        let refused = administer(store, &command(request, in_currency(action, "EUR"))).await;
        assert_eq!(refused, Err(mismatch.clone()));
        let done = administer(store, &command(request, in_currency(action, "USD"))).await.unwrap();
        assert!(!done.replayed, "the refusal bound nothing");
    }
    // A known payment in another currency is not that payment.
    let other = payment(wallet, 10, "stripe", "pi_1");
    assert_eq!(act(store, in_currency(&other, "EUR")).await, Err(mismatch));
    assert!(act(store, in_currency(&other, "USD")).await.unwrap().replayed);
    let refused = act(store, in_currency(&first, "EUR")).await;
    assert!(matches!(refused, Err(AccountRefusal::PostingConflict(_))), "{refused:?}");
    assert_eq!(available(store, wallet).await, 14);
}

async fn payments_that_versions_before_booked_twice_are_noted(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let mut made = Vec::new();
    for n in 0..6_i64 {
        let deposit = payment(wallet, 10, "bank", &format!("t-{n}"));
        act(store, deposit.clone()).await.unwrap();
        made.push(id(&deposit));
    }
    let found = store.verify().await.unwrap();
    assert!(found.is_clean() && found.notes.is_empty(), "{found:?}");
    let mut raw = Raw::reckless(home).await;
    let spellings = [
        ("stripe", "pi_1"),
        ("Stripe", "pi_1"),
        ("stripe", "PI_1"),
        ("bank", "caf\u{e9} 1"),
        ("Bank", "cafe\u{301} 1"),
        ("bank", "t-5"),
    ];
    for (posting, (source, reference)) in made.iter().zip(spellings) {
        respell(&mut raw, *posting, source, reference).await;
    }
    // The rows that were changed here are mismatches with the audit log, which versions before wrote alike.
    let found = store.verify().await.unwrap();
    let noted: Vec<_> = found.notes.iter().map(|it| (it.subject, it.sentence.clone())).collect();
    let noted_of = |posting: usize, first: usize| {
        let sentence = format!("its payment is booked as posting {} as well", made[first]);
        (Subject::Posting(made[posting]), sentence)
    };
    assert_eq!(noted, [noted_of(1, 0), noted_of(3, 4), noted_of(4, 3)]);
    // The one that is spelled alike is the one that a repetition is of, and else the first.
    for (source, first) in [("stripe", 0), ("Stripe", 1), ("STRIPE", 0)] {
        let known = act(store, payment(wallet, 10, source, "pi_1")).await.unwrap();
        assert_eq!((known.things, known.replayed), (vec![ResourceId::Posting(made[first])], true));
    }
}

async fn a_canonical_digest_that_was_changed_by_hand_is_found(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let request = command(key(), payment(wallet, 10, "stripe", "pi_1"));
    administer(store, &request).await.unwrap();
    let options =
        AuditOptions { secrets: vec![secret()].into(), ..AuditOptions::keeping(Duration::MAX) };
    assert!(store.verify_by(options.clone(), |_| {}).await.unwrap().is_clean());
    let record = store.request_record(ActorId::Local, request.request.key).await.unwrap().unwrap();
    assert!(record.is_of(&request.request) && record.canonical == request.request.canonical);
    let mut raw = Raw::reckless(home).await;
    // As a node of the version before writes it: compared by the digest that it has.
    raw.run("UPDATE admin_requests SET canonical_digest = NULL").await;
    assert!(store.verify_by(options.clone(), |_| {}).await.unwrap().is_clean());
    let other = CanonicalDigest::new([7; 32]);
    let known = RequestBinding { canonical: Some(other), ..request.request };
    let mut repeated = request.clone();
    repeated.request = known;
    assert!(administer(store, &repeated).await.unwrap().replayed);
    let forged = match raw {
        Raw::File(_) => "x'01' || zeroblob(64)",
        Raw::Server(_) => "'\\x01'::bytea || zeroblob(64)",
    };
    raw.run(&format!(
        "UPDATE admin_requests SET canonical_digest = CAST({forged} AS {})",
        match raw {
            Raw::File(_) => "BLOB",
            Raw::Server(_) => "bytea",
        }
    ))
    .await;
    let found = store.verify_by(options, |_| {}).await.unwrap();
    let told: Vec<_> = found.mismatches.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    let expected = "has a canonical digest that was not written by a gateway";
    assert!(told.iter().all(|it| it.ends_with(expected)), "{told:?}");
}

on_every_store! {
    a_source_compares_in_lower_case,
    of_two_who_race_with_spellings_of_one_source_one_books,
    a_new_reference_is_visible_ascii_and_an_old_one_is_answered,
    an_amount_of_another_currency_is_refused,
    payments_that_versions_before_booked_twice_are_noted,
    a_canonical_digest_that_was_changed_by_hand_is_found,
}

//! Judgement of deposits by their request key, currency and reference: a row for each.

use super::*;
use crate::admin::{PostingDetails, WalletPatch};
use crate::{Currency, PostingId, WalletId};

const WALLET: WalletId = WalletId::from_u128(1);

fn deposit(id: u128, [source, reference]: [&str; 2], currency: Option<&str>) -> NewPosting {
    let id = PostingId::from_u128(id);
    let posting = Posting::new(id, WALLET, PostingKind::Deposit, Micros::new(10)).unwrap();
    let reference = Some(DepositReference::new(source, reference));
    let details = PostingDetails { reference, ..PostingDetails::default() };
    let currency = currency.map(|code| code.parse().unwrap());
    NewPosting { posting, details, allowance: None, currency }
}

/// Facts of an empty wallet in US dollars.
fn facts() -> PostingFacts {
    let settings = WalletPatch::default();
    let wallet = WalletRecord::new(WALLET, "acme".to_owned(), Currency::USD, settings);
    PostingFacts { wallet: Some(wallet), ..PostingFacts::default() }
}

fn judged(new: &NewPosting, facts: &PostingFacts) -> Result<AccountEffect, AccountRefusal> {
    post(new, facts, Timestamp::from_micros(1)).map_err(|refused| refused.refusal)
}

fn with_known(new: &NewPosting) -> PostingFacts {
    let known = KnownPosting { posting: new.posting.clone(), details: Some(new.details.clone()) };
    PostingFacts { known: Some(known), ..facts() }
}

#[test]
fn what_is_known_is_answered_before_what_is_new_is_judged() {
    let plain = deposit(1, ["stripe", "pi_1"], None);
    let odd = deposit(1, ["The Bank", "Überweisung 1"], None);
    let in_usd = deposit(1, ["stripe", "pi_1"], Some("USD"));
    let in_eur = deposit(1, ["stripe", "pi_1"], Some("EUR"));
    let conflict = AccountRefusal::PostingConflict(plain.posting.clone());
    let mismatch =
        AccountRefusal::CurrencyMismatch { wallet: Currency::USD, named: "EUR".parse().unwrap() };
    let referenced = |new: &NewPosting| {
        let earlier = Posting { id: PostingId::from_u128(9), ..new.posting.clone() };
        PostingFacts { referenced: Some(earlier), ..facts() }
    };
    let rows: [(&NewPosting, PostingFacts, Result<bool, AccountRefusal>); 12] = [
        (&plain, facts(), Ok(false)),
        (&in_usd, facts(), Ok(false)),
        (&in_eur, facts(), Err(mismatch.clone())),
        (&odd, facts(), Err(AccountRefusal::ReferenceNotAscii("source"))),
        // The posting of the request key.
        (&plain, with_known(&plain), Ok(true)),
        (&in_usd, with_known(&plain), Ok(true)),
        (&in_eur, with_known(&plain), Err(conflict.clone())),
        (&odd, with_known(&odd), Ok(true)),
        (&odd, with_known(&plain), Err(conflict)),
        // The payment under another request key.
        (&odd, referenced(&odd), Ok(true)),
        (&in_usd, referenced(&in_usd), Ok(true)),
        (&in_eur, referenced(&in_eur), Err(mismatch)),
    ];
    for (row, (new, facts, expected)) in rows.into_iter().enumerate() {
        assert_eq!(judged(new, &facts).map(|effect| effect.was_done), expected, "{row}");
    }
}

#[test]
fn a_source_is_one_in_any_case_and_an_id_is_not() {
    let same = |one: [&str; 2], other: [&str; 2]| {
        DepositReference::new(one[0], one[1]) == DepositReference::new(other[0], other[1])
    };
    assert!(same(["Stripe", "pi_1"], ["sTRIPE", "pi_1"]));
    assert!(!same(["stripe", "pi_1"], ["stripe", "PI_1"]));
    assert!(!same(["stripe", "pi_1"], ["strip\u{212a}", "pi_1"]), "letters of ASCII only");
    assert!(same(["BANK", "caf\u{e9}"], ["bank", "cafe\u{301}"]), "a row of before");
}

#[test]
fn a_reference_that_can_be_booked_is_visible_ascii() {
    for byte in 0..=0x7f_u8 {
        let text = char::from(byte).to_string();
        let is_visible = (b'!'..=b'~').contains(&byte);
        let fields = [[text.as_str(), "1"], ["bank", text.as_str()]];
        let refused = fields.map(|[source, id]| DepositReference::new(source, id).unbookable());
        let expected =
            if is_visible { [None, None] } else { [Some("source"), Some("external_reference")] };
        assert_eq!(refused, expected, "{byte:#04x}");
    }
    // What the normal form of a text makes plain was typed in another way.
    for text in ["\u{a0}", "\u{212a}", "\u{ff11}", "\u{37e}"] {
        assert_eq!(DepositReference::new(text, "1").unbookable(), Some("source"), "{text:?}");
    }
}

#[test]
fn a_posting_and_a_balance_have_a_bound_and_what_is_booked_is_answered() {
    let of = |amount: i64, kind: PostingKind| {
        let id = PostingId::from_u128(1);
        let posting = Posting::new(id, WALLET, kind, Micros::new(amount)).unwrap();
        let details = PostingDetails::default();
        NewPosting { posting, details, allowance: None, currency: None }
    };
    let with = |available: i64, held: i64| {
        let mut facts = facts();
        let record = facts.wallet.as_mut().unwrap();
        (record.wallet.available, record.wallet.held) = (Micros::new(available), Micros::new(held));
        facts
    };
    let (most, full) = (Micros::POSTING_MAX.get(), Micros::BALANCE_MAX.get());
    let deposit = |amount| of(amount, PostingKind::Deposit);
    let adjustment = |amount| of(amount, PostingKind::Adjustment("because".to_owned()));
    let too_large = Err(AccountRefusal::PostingTooLarge);
    let wallet_full = Err(AccountRefusal::WalletFull);
    let rows: [(NewPosting, PostingFacts, Result<(), AccountRefusal>); 8] = [
        (deposit(most), with(0, 0), Ok(())),
        (deposit(most + 1), with(0, 0), too_large.clone()),
        (adjustment(-most - 1), with(full, 0), too_large),
        (deposit(1), with(full - 1, 0), Ok(())),
        (deposit(1), with(full, 0), wallet_full.clone()),
        (deposit(1), with(full - 1, 1), wallet_full),
        // From before the bound: it may come down, and is booked as it is.
        (adjustment(-1), with(full + 9, 0), Ok(())),
        (deposit(most + 1), with_known(&deposit(most + 1)), Ok(())),
    ];
    for (row, (new, facts, expected)) in rows.into_iter().enumerate() {
        assert_eq!(judged(&new, &facts).map(drop), expected, "{row}");
    }
}

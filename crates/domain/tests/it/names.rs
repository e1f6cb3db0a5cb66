//! The names in rows and answers: what is stored under one must be found under it for ever.

use holdfast_domain::ledger::{Account, PostingKind, TransferKind};
use holdfast_domain::limits::{Counter, SpendWindow};
use holdfast_domain::model::{ModelAlias, PublicModelId};
use holdfast_domain::operation::{ProviderRefusal, Situation};
use holdfast_domain::price::PriceVersionId;
use holdfast_domain::usage::{MeterKind, MetersSource};
use holdfast_domain::{OperationId, Phase, Timestamp};

#[test]
fn accounts_and_transfers_keep_their_names() {
    let accounts = [
        Account::Funding,
        Account::Available,
        Account::Held,
        Account::Revenue,
        Account::Adjustments,
    ];
    let names = ["funding", "available", "held", "revenue", "adjustments"];
    assert_eq!(accounts.map(Account::label), names);
    let kinds = [
        TransferKind::Hold,
        TransferKind::Settle,
        TransferKind::Rest,
        TransferKind::Release,
        TransferKind::Lapse,
    ];
    assert_eq!(kinds.map(TransferKind::label), ["hold", "settle", "rest", "release", "lapse"]);
}

#[test]
fn postings_keep_their_names_and_their_accounts() {
    let kinds = [
        PostingKind::Deposit,
        PostingKind::Refund(OperationId::from_u128(1)),
        PostingKind::Adjustment("drift".to_owned()),
    ];
    assert_eq!(kinds.each_ref().map(PostingKind::label), ["deposit", "refund", "adjustment"]);
    let accounts = [Account::Funding, Account::Revenue, Account::Adjustments];
    assert_eq!(kinds.each_ref().map(PostingKind::counterpart), accounts);
}

#[test]
fn counters_and_meters_keep_their_names() {
    let counters = ["requests", "tokens", "concurrency", "spend_total", "spend_day", "spend_month"];
    assert_eq!(Counter::ALL.map(Counter::label), counters);
    assert_eq!(SpendWindow::ALL.map(SpendWindow::label), ["total", "day", "month"]);
    let kinds = [
        "input",
        "cached_input",
        "cache_write",
        "audio_input",
        "output",
        "reasoning",
        "audio_output",
        "request",
        "image",
    ];
    assert_eq!(MeterKind::ALL.map(MeterKind::label), kinds);
    let sources = [MetersSource::Reported, MetersSource::Estimated];
    assert_eq!(sources.map(MetersSource::label), ["reported", "estimated"]);
}

#[test]
fn phases_and_situations_keep_their_names() {
    let finished_at = Timestamp::from_micros(0);
    let refusal = ProviderRefusal::Request;
    let phases = [
        Phase::Leased,
        Phase::Open,
        Phase::Refused { refusal, finished_at },
        Phase::Abandoned { finished_at },
    ];
    let names = ["leased", "open", "refused", "abandoned"];
    assert_eq!(phases.each_ref().map(Phase::label), names);
    let refusals = [ProviderRefusal::Request, ProviderRefusal::ContextLength];
    assert_eq!(refusals.map(ProviderRefusal::label), ["request", "context_length"]);
    let situations =
        [Situation::NotStarted, Situation::InProgress, Situation::Stale, Situation::Completed];
    let names = ["not_started", "in_progress", "stale", "completed"];
    assert_eq!(situations.map(Situation::label), names);
}

#[test]
fn a_price_version_is_named_after_its_model_currency_and_moment() {
    let model = PublicModelId::try_from("acme/large").unwrap();
    let name = PriceVersionId::new(&model, "USD".parse().unwrap(), "2026-11-01T00:00:00Z");
    assert_eq!(name.as_str(), "acme/large/USD/2026-11-01T00:00:00Z");
    assert_eq!(name.to_string(), name.as_str());
    assert_eq!(PriceVersionId::from_stored(name.as_str()), name);
}

#[test]
fn an_alias_is_a_short_name_without_a_slash() {
    let longest = "a".repeat(ModelAlias::LEN_MAX);
    for good in ["smart", "a", "0", "gpt-4o_mini.2", &longest] {
        assert_eq!(ModelAlias::try_from(good).unwrap().as_str(), good);
        assert!(PublicModelId::try_from(good).is_err(), "no alias is an id");
    }
    let too_long = "a".repeat(ModelAlias::LEN_MAX + 1);
    for bad in ["", "Smart", "-a", ".a", "_a", "a/b", "a b", "a:b", "é", "a\n", &too_long] {
        assert!(ModelAlias::try_from(bad).is_err(), "{bad:?}");
    }
}

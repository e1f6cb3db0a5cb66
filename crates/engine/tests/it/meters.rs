//! Who pays what: meters, prices, overruns, and settlements that the store refuses.

use holdfast_domain::admin::event::EventKind;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::limits::{Counter, Limits, ReachedLimit, SpendLimit, SpendWindow};
use holdfast_domain::operation::{Lease, Phase};
use holdfast_domain::ports::{CallFailure as ProviderFailure, NotRunProof};
use holdfast_domain::price::UnitPrices;
use holdfast_domain::usage::{MeterKind, Meters, MetersSource, UsageReason, UsageReport};
use holdfast_domain::{Currency, Journal, Micros, OperationId, Timestamp};
use holdfast_engine::{Price, RequestFailure};
use holdfast_testkit::{Commands as _, Fault, Gate, Script, sample};

use crate::store::Store;
use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, HELLO_HOLDS, assert_failed, body, operation_id, pass, says, secs,
    setup, text, turns,
};

fn usage(store: &Store) -> UsageRecord {
    let Phase::Completed { usage, .. } = store.operation().phase else {
        panic!("{}", store.phase());
    };
    usage
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_usage_is_charged_by_an_own_count() {
    let world = setup().script(Script::finishing(None).say("twelve bytes").stop()).start().await;
    let reply = world.ask(1, HELLO).await;
    let usage = usage(&world.store);
    assert_eq!(usage.metered.source, MetersSource::Estimated);
    // "hello" is two times four bytes, begun; "twelve bytes" three times.
    assert_eq!(usage.metered.meters, Meters::text(2, 3).unwrap());
    assert_eq!(usage.charge.get(), 5);
    assert!(text(&reply).contains(r#""customer_charge_micros":5"#));
}

#[tokio::test(start_paused = true)]
async fn pictures_are_metered_as_the_request_has_them_whoever_counts_the_rest() {
    const PICTURES: &str = r#"{"model":"holdfast/sample","messages":[{"role":"user","content":[
        {"type":"text","text":"hello"},
        {"type":"image_url","image_url":{"url":"https://pictures.example/1.png"}},
        {"type":"image_url","image_url":{"url":"https://pictures.example/2.png"}}]}]}"#;
    // Two tokens of an own prompt, 20 of each picture, and three of an own answer; two pictures at five micros.
    let own = Script::finishing(None).say("twelve bytes").stop();
    for (script, source, cost) in [
        (says("hi"), MetersSource::Reported, ANSWER_COSTS + 10),
        (own, MetersSource::Estimated, 2 + 40 + 3 + 10),
    ] {
        let priced = setup().script(script).model(|model| {
            model.contract.image_tokens = Some(20);
            let rates = *sample::price().tariff.rates();
            let with_pictures = |kind| if kind == MeterKind::Image { 5 } else { rates.rate(kind) };
            model.prices[0].version.tariff = UnitPrices::from_fn(with_pictures).unwrap().into();
        });
        let world = priced.start().await;
        body(&world.ask(1, PICTURES).await);
        let usage = usage(&world.store);
        assert_eq!(usage.metered.source, source);
        assert_eq!(usage.metered.meters.count(MeterKind::Image), 2);
        assert_eq!((usage.charge.get(), usage.shortfall.get()), (cost, 0));
        assert_eq!(world.store.operation().hold.get(), HELLO_HOLDS + 2 * 20 + 2 * 5);
    }
}

#[tokio::test(start_paused = true)]
async fn an_own_count_takes_no_base64_for_text() {
    let encoded = "A".repeat(4_000);
    let audio =
        format!(r#"{{"type":"input_audio","input_audio":{{"data":"{encoded}","format":"mp3"}}}}"#);
    let file = format!(
        r#"{{"type":"file","file":{{"filename":"a.pdf","file_data":"data:application/pdf;base64,{encoded}"}}}}"#
    );
    let image = format!(
        r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{encoded}"}}}}"#
    );
    let base64_text = format!(r#"{{"type":"text","text":"{}"}}"#, &encoded[..400]);
    // "hello" is two tokens, with the name of the document three.
    for (part, image_tokens, prompt, has_uncounted) in [
        (&audio, Some(20), 2, true),
        (&file, Some(20), 3, true),
        (&image, Some(20), 22, false),
        (&image, None, 2, true),
        (&base64_text, None, 102, false),
    ] {
        let message = format!(
            r#"{{"model":"holdfast/sample","messages":[{{"role":"user","content":[
            {{"type":"text","text":"hello"}},{part}]}}]}}"#
        );
        let own = Script::finishing(None).say("twelve bytes").stop();
        let world = setup()
            .funds(1_000_000)
            .script(own)
            .model(move |model| model.contract.image_tokens = image_tokens)
            .start()
            .await;
        body(&world.ask(1, &message).await);
        let metered = usage(&world.store).metered;
        assert_eq!(metered.meters.prompt_tokens(), prompt, "{part:.40}");
        assert_eq!(metered.source, MetersSource::Estimated);
        let reasons: Vec<_> = metered.reasons.iter().collect();
        let uncounted = has_uncounted.then_some(UsageReason::MediaNotCounted);
        let expected: Vec<_> =
            [Some(UsageReason::NotReported), uncounted].into_iter().flatten().collect();
        assert_eq!(reasons, expected, "{part:.40}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_that_contradicts_itself_is_cut_charged_and_explained() {
    let report = |prompt: u64, completion: u64, total: u64| UsageReport {
        total: total.into(),
        has_content: true,
        ..UsageReport::text(prompt, completion)
    };
    let cached = UsageReport { cached: 387.into(), ..report(298, 14, 312) };
    let beside = UsageReport { reasoning: 40.into(), ..report(10, 30, 80) };
    for (reported, tokens, reason) in [
        (cached, (298, 14), UsageReason::PartCut),
        // Above the 50 that were asked for, and within what is accepted.
        (beside, (10, 70), UsageReason::BesideWhole),
        (report(10, 30, 60), (10, 50), UsageReason::RestIsOutput),
        (report(10, 30, 61), (10, 30), UsageReason::TotalNotBelieved),
        (report(1_001, 30, 0), (2, 3), UsageReason::AboveContext),
        (report(1, 1_125, 0), (2, 3), UsageReason::AboveOutput),
        (report(10, 0, 10), (2, 3), UsageReason::TextWithoutTokens),
        (UsageReport::default(), (2, 3), UsageReason::CountMissing),
    ] {
        let script = Script::reporting(Some(reported)).say("twelve bytes").stop();
        let world = setup().script(script).start().await;
        let reply = world.ask(1, HELLO).await;
        let usage = usage(&world.store);
        let meters = usage.metered.meters;
        assert_eq!((meters.prompt_tokens(), meters.completion_tokens()), tokens, "{reason:?}");
        assert_eq!(usage.metered.reasons, [reason].into_iter().collect());
        // A micro a token, whatever it is.
        let cost = i64::try_from(tokens.0 + tokens.1).unwrap();
        assert_eq!(
            (usage.charge.get(), usage.shortfall.get()),
            (cost.min(HELLO_HOLDS), (cost - HELLO_HOLDS).max(0))
        );
        let told = [
            format!(r#""prompt_tokens":{}"#, tokens.0),
            format!(r#""completion_tokens":{}"#, tokens.1),
            format!(r#""customer_charge_micros":{}"#, usage.charge.get()),
        ];
        for member in told {
            assert!(text(&reply).contains(&member), "{member} {}", text(&reply));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reported_charge_above_its_bound_is_dropped_and_explained() {
    let bound = 1_000 * HELLO_HOLDS;
    for (charge, is_accepted) in
        [(0, true), (bound, true), (bound + 1, false), (i64::MAX, false), (-1, false)]
    {
        let script = says("hi").charge(Currency::USD, Micros::new(charge));
        let world = setup().script(script).start().await;
        body(&world.ask(1, HELLO).await);
        let usage = usage(&world.store);
        assert_eq!(usage.charge.get(), ANSWER_COSTS, "{charge}");
        let accepted = is_accepted.then(|| Micros::new(charge));
        assert_eq!(usage.metered.provider_cost, accepted, "{charge}");
        let reasons = (!is_accepted).then_some(UsageReason::ChargeTooLarge).into_iter().collect();
        assert_eq!(usage.metered.reasons, reasons, "{charge}");
    }
    let elsewhere = says("hi").charge("EUR".parse().unwrap(), Micros::MAX);
    let world = setup().script(elsewhere).start().await;
    body(&world.ask(1, HELLO).await);
    let metered = usage(&world.store).metered;
    assert_eq!((metered.provider_cost, metered.reasons.is_empty()), (None, true));
}

#[tokio::test(start_paused = true)]
async fn an_own_count_ends_at_the_bounds_of_the_hold() {
    let long = "o".repeat(100_000);
    let world = setup().script(Script::finishing(None).say(&long).stop()).start().await;
    body(&world.ask(1, HELLO).await);
    let usage = usage(&world.store);
    assert_eq!(usage.metered.meters, Meters::text(2, 50).unwrap());
    assert_eq!((usage.charge.get(), usage.shortfall.get()), (52, 0));
}

#[tokio::test(start_paused = true)]
async fn what_costs_more_than_the_hold_is_charged_the_hold_and_the_rest_is_shortfall() {
    let overrun = Script::finishing(Meters::text(1_000, 1_000).ok()).say("hi").stop();
    let world = setup().script(overrun).start().await;
    let reply = world.ask(1, HELLO).await;
    let usage = usage(&world.store);
    assert_eq!(usage.metered.source, MetersSource::Reported);
    assert_eq!(usage.charge.get(), HELLO_HOLDS);
    assert_eq!(usage.shortfall.get(), 2_000 - HELLO_HOLDS);
    assert!(text(&reply).contains(&format!(r#""customer_charge_micros":{HELLO_HOLDS}"#)));
    assert_eq!(world.store.balances(), (FUNDS - HELLO_HOLDS, 0));
}

#[tokio::test(start_paused = true)]
async fn usage_that_no_run_can_have_used_up_is_not_charged() {
    // The model takes 1,000 tokens, and 50 were asked for: twice that and 1,024 more are believed.
    for (input, output, source) in [
        (1_000, 1_124, MetersSource::Reported),
        (1_001, 1, MetersSource::Estimated),
        (1, 1_125, MetersSource::Estimated),
        (99_999_999_999, 7, MetersSource::Estimated),
    ] {
        let script = Script::finishing(Meters::text(input, output).ok()).say("twelve bytes").stop();
        let world = setup().script(script).start().await;
        body(&world.ask(1, HELLO).await);
        let usage = usage(&world.store);
        assert_eq!(usage.metered.source, source, "{input} {output}");
        assert_eq!(usage.charge.get() == 5, source == MetersSource::Estimated, "{input} {output}");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_are_reserved_by_the_bound_and_corrected_to_what_was_used() {
    let within = |tokens| {
        let limits = Limits { tokens_per_minute: Some(tokens), ..Limits::default() };
        setup().limits(limits).script(says("hi"))
    };
    // As many as it holds micros, at a micro a token.
    let bound = HELLO_HOLDS.unsigned_abs();
    let world = within(bound - 1).start().await;
    assert_failed!(
        world.ask(1, HELLO).await,
        RequestFailure::LimitReached(ReachedLimit { counter: Counter::Tokens, .. })
    );
    let world = within(bound).start().await;
    body(&world.ask(1, HELLO).await);
    let journal = &world.store.journal;
    assert_eq!(journal.counter(sample::API_KEY, Counter::Tokens, journal.now()), ANSWER_COSTS);
}

#[tokio::test(start_paused = true)]
async fn a_spend_limit_that_is_reached_is_told_once() {
    let spend = |micros| {
        let limit = SpendLimit { micros: Micros::new(micros), window: SpendWindow::Day };
        setup().limits(Limits { spend: Some(limit), ..Limits::default() })
    };
    // The first is charged, and what is left holds no second one.
    let world = spend(HELLO_HOLDS).script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    for key in 2..9 {
        assert_failed!(
            world.ask(key, HELLO).await,
            RequestFailure::LimitReached(ReachedLimit { counter: Counter::SpendDay, .. })
        );
        tokio::time::sleep(secs(20)).await;
    }
    let told = world.store.told.lock().unwrap().clone();
    let told: Vec<_> = told.iter().map(|event| (event.kind, event.wallet)).collect();
    assert_eq!(told, [(EventKind::ApiKeyLimitReached, Some(sample::WALLET))]);
    // A claim that is larger than the bound says nothing of what was spent.
    let world = spend(HELLO_HOLDS - 1).script(says("hi")).start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::LimitReached(_));
    tokio::time::sleep(secs(20)).await;
    assert!(world.store.told.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_has_ended_counts_no_more_as_running() {
    let limits = Limits { concurrency: Some(1), ..Limits::default() };
    let gate = Gate::new();
    let world =
        setup().limits(limits).script(says("hi").wait(&gate)).script(says("hi")).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    assert_failed!(
        world.ask(2, HELLO).await,
        RequestFailure::LimitReached(ReachedLimit { counter: Counter::Concurrency, .. })
    );
    gate.open();
    body(&first.told().await);
    body(&world.ask(2, HELLO).await);
}

fn price(from: Timestamp, name: &str, micros_per_million: u64) -> Price {
    Price { effective_from: from, version: sample::priced(name, micros_per_million) }
}

#[tokio::test(start_paused = true)]
async fn the_newest_price_that_is_in_force_is_taken() {
    let begins = |n| sample::NOW.after(secs(n));
    let past = |name, rate| price(Timestamp::from_micros(1), name, rate);
    let world = setup()
        .model(|model| {
            model.prices = vec![
                price(begins(3_600), "later", 3_000_000),
                price(sample::NOW, "newest", 2_000_000),
                past("old", 5_000_000),
            ];
        })
        .script(says("hi"))
        .script(says("hi"))
        .start()
        .await;
    body(&world.ask(1, HELLO).await);
    let charged = world.store.operation();
    assert!(charged.price.id.as_str().ends_with("newest"));
    assert_eq!(usage(&world.store).charge.get(), 2 * ANSWER_COSTS);
    pass(secs(3_600)).await;
    body(&world.ask(2, HELLO).await);
    let later = world.store.journal.operation(operation_id(2)).unwrap();
    assert!(later.price.id.as_str().ends_with("later"));
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_price_in_the_wallets_currency_is_not_allowed() {
    let euros = setup().model(|model| {
        model.prices[0].version.currency = "EUR".parse().unwrap();
    });
    let world = euros.start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NoPrice(currency) if *currency == sample::usd());
    let future = setup().model(|model| {
        model.prices[0].effective_from = sample::NOW.after(secs(60));
    });
    assert_failed!(future.start().await.ask(1, HELLO).await, RequestFailure::NoPrice(_));
    assert_eq!(world.store.journal.offers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_result_whose_settlement_is_refused_is_kept_and_settled_by_the_reconciler() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.journal.break_wallet(sample::WALLET);
    gate.open();
    let told = (operation_id(1), ANSWER_COSTS);
    assert_failed!(first.told().await, RequestFailure::Recorded(id, charge) if (*id, charge.get()) == told);
    assert_eq!(world.store.phase(), "recorded");
    assert_eq!(world.store.balances(), (FUNDS - HELLO_HOLDS, HELLO_HOLDS));
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Recorded(..));
    world.store.journal.repair_wallet(sample::WALLET);
    pass(secs(5)).await;
    assert_eq!(world.store.phase(), "completed");
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
    let reply = world.ask(1, HELLO).await;
    assert!(text(&reply).contains(r#""content":"hi""#));
    assert!(reply.replayed);
    assert_eq!(world.runs(), 1);
    assert_eq!(world.store.transfers("settle"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_stays_recorded_for_five_minutes_is_told_once() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.journal.break_wallet(sample::WALLET);
    gate.open();
    assert_failed!(first.told().await, RequestFailure::Recorded(..));
    pass(secs(290)).await;
    assert!(world.store.told.lock().unwrap().is_empty());
    pass(secs(600)).await;
    let told: Vec<_> = world.store.told.lock().unwrap().iter().map(|event| event.kind).collect();
    assert_eq!(told, [EventKind::OperationStuck]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_settles_what_was_recorded_without_waiting_for_the_reconciler() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.journal.break_wallet(sample::WALLET);
    gate.open();
    assert_failed!(first.told().await, RequestFailure::Recorded(..));
    world.store.journal.repair_wallet(sample::WALLET);
    assert!(text(&world.ask(1, HELLO).await).contains(r#""content":"hi""#));
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn recorded_operations_do_not_keep_others_from_being_reconciled() {
    let gate = Gate::new();
    let mut setup = setup().funds(1_000_000);
    for _run in 0..70 {
        setup = setup.script(says("hi").wait(&gate));
    }
    let world = setup.start().await;
    let mut callers = Vec::new();
    for key in 1..=70 {
        callers.push(world.asking(key, HELLO).await);
    }
    turns().await;
    world.store.journal.break_wallet(sample::WALLET);
    gate.open();
    for caller in callers {
        assert_failed!(caller.told().await, RequestFailure::Recorded(..));
    }
    let wallet = sample::fresh();
    world.store.journal.create_wallet(wallet, "free", sample::usd()).await.unwrap();
    // Left by an earlier incarnation: to be reaped at once.
    let claim = sample::claim()
        .wallet(wallet)
        .hold(0)
        .api_key(sample::fresh())
        .lease(Lease { node: sample::node("a"), ends_at: sample::NOW.after(secs(1_000_000)) })
        .build();
    let journal = &world.store.journal;
    Journal::commit(journal, sample::admission(&claim)).await.unwrap();
    let left = OperationId::of(claim.api_key, claim.request_key);
    pass(secs(9)).await;
    assert_eq!(journal.operation(left).unwrap().phase.label(), "abandoned");
    assert_eq!(journal.operation(operation_id(1)).unwrap().phase.label(), "recorded");
}

#[tokio::test(start_paused = true)]
async fn what_is_released_is_released_once_although_the_store_loses_answers() {
    let not_run = ProviderFailure::NotRun(NotRunProof::Connect);
    for fault in [Fault::Landed, Fault::NotLanded, Fault::LandsLate] {
        let world = setup().script(Script::failing(not_run)).start().await;
        world.store.journal.fail_next([Fault::None, fault]);
        assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
        assert_eq!(world.store.balances(), (FUNDS, 0), "{fault:?}");
        assert_eq!(world.store.transfers("release"), 1);
    }
}

//! The operator's books: refunds, adjustments, and what is refused of them.

pub(crate) mod statements;

use holdfast_tests::site::text;
use holdfast_tests::{Account, Config, Gateway, Site, request_key};
use serde_json::json;

use crate::bodies::sim;
use crate::check::{charge, check_completion};

/// A completed operation's id and charge.
fn completed(gateway: &Gateway, site: &Site, account: &Account) -> (String, i64) {
    let key = request_key();
    let answer = gateway.complete(account, &key, &sim("Hello there"));
    let charge = charge(&check_completion(&answer, &key, false));
    (operation(site, account, &key), charge)
}

/// The id of a request key's operation.
fn operation(site: &Site, account: &Account, key: &str) -> String {
    text(&site.json(&["operation", "show", "--api-key", &account.id, key]), "id")
}

/// Micros as they are written on the command line.
fn units(micros: i64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[test]
fn a_charge_is_refunded_in_parts_and_never_twice() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let (id, charge) = completed(&gateway, &site, &account);
    let before = site.balance(&account).0;
    let refund = |amount: i64| site.cli(&["wallet", "refund", &id, &units(amount), "--json"]);

    let said = refund(charge + 1).failed(1);
    assert!(said.contains(&format!("{} is left", units(charge))), "{said}");
    let part = refund(10).json();
    let expected = json!({
        "id": part["id"], "wallet_id": account.wallet, "kind": "refund", "amount_micros": 10,
        "operation_id": id, "source": null, "external_reference": null, "reason": null, "note": null,
        "created_at": part["created_at"], "actor": "local", "replayed": false,
        "wallet": part["wallet"],
    });
    assert_eq!(part, expected);
    assert_eq!(site.balance(&account), (before + 10, 0));
    let said = refund(charge - 9).failed(1);
    assert!(said.contains(&format!("{} is left", units(charge - 10))), "{said}");
    let completion = format!("chatcmpl_{}", id.replace('-', ""));
    let rest = site.json(&["wallet", "refund", &completion, &units(charge - 10)]);
    assert_eq!(rest["operation_id"], id.as_str());
    assert_eq!(site.balance(&account), (before + charge, 0));
    let said = refund(1).failed(1);
    assert!(said.contains("0.00 is left"), "{said}");
    site.verify();
    let shown = site.json(&["operation", "show", &id]);
    assert_eq!(shown["charge_micros"], charge, "what was charged stays what was charged");
}

#[test]
fn a_posting_with_a_known_key_is_a_replay_or_a_conflict() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let (id, _charge) = completed(&gateway, &site, &account);
    let (other, _charge) = completed(&gateway, &site, &account);
    let (refunded, adjusted) = (request_key(), request_key());
    let refund = |operation: &str, amount: &str| {
        site.cli(&["wallet", "refund", operation, amount, "--key", &refunded, "--json"])
    };
    let adjust = |amount: &str, reason: &str| {
        let reason = format!("--reason={reason}");
        site.cli(&["wallet", "adjust", "main", amount, &reason, "--key", &adjusted, "--json"])
    };
    let before = site.balance(&account).0;
    assert_eq!(refund(&id, "0.00002").json()["replayed"], false);
    assert_eq!(adjust("-0.5", "a test").json()["replayed"], false);
    let after = (before + 20 - 500_000, 0);
    assert_eq!(site.balance(&account), after);

    assert_eq!(refund(&id, "0.000020").json()["replayed"], true);
    assert_eq!(adjust("-0.50", "a test").json()["replayed"], true);
    for ran in [
        refund(&id, "0.00001"),
        refund(&other, "0.00002"),
        site.cli(&["wallet", "deposit", "main", "0.00002", "--key", &refunded]),
    ] {
        let said = ran.failed(1);
        assert!(said.contains(&format!("{refunded} is a refund of 0.00002")), "{said}");
    }
    for ran in [adjust("0.5", "a test"), adjust("-0.5", "another")] {
        let said = ran.failed(1);
        assert!(said.contains(&format!("{adjusted} is an adjustment of -0.50")), "{said}");
    }
    assert_eq!(site.balance(&account), after);
    site.verify();
}

#[test]
fn only_what_was_charged_is_refunded() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let cases = [
        ("[[sim: refuse]]", "refused"),
        ("[[sim: fail-before]]", "open"),
        ("[[sim: fail-after]]", "abandoned"),
    ];
    for (directive, status) in cases {
        let key = request_key();
        assert!(gateway.complete(&account, &key, &sim(directive)).status >= 400);
        let id = operation(&site, &account, &key);
        assert_eq!(site.json(&["operation", "show", &id])["status"], status);
        let said = site.cli(&["wallet", "refund", &id, "0.000001"]).failed(1);
        assert!(said.contains("was not charged, so no charge can be refunded"), "{said}");
    }
    let nobody = request_key();
    let said = site.cli(&["wallet", "refund", &nobody, "1"]).failed(1);
    assert!(said.contains(&format!("there is no operation {nobody}")), "{said}");
    let (id, _charge) = completed(&gateway, &site, &account);
    for bad in ["0", "-0.000001", "0.0000001", "ten"] {
        let _said = site.cli(&["wallet", "refund", &id, bad]).failed(2);
    }
    site.verify();
}

#[test]
fn an_adjustment_goes_both_ways_and_does_not_overdraw() {
    let (site, account) = Site::funded(&Config::simulated());
    let adjust = |amount: &str, reason: &str| {
        site.cli(&["wallet", "adjust", "main", amount, "--reason", reason, "--json"])
    };
    let taken = adjust("-2.50", "chargeback, “May”").json();
    let expected = json!({
        "id": taken["id"], "wallet_id": account.wallet, "kind": "adjustment",
        "amount_micros": -2_500_000, "source": null, "external_reference": null,
        "reason": "chargeback, “May”", "note": null, "created_at": taken["created_at"],
        "actor": "local", "replayed": false, "operation_id": null, "wallet": taken["wallet"],
    });
    assert_eq!(taken, expected);
    assert_eq!(adjust("0.000001", "goodwill").json()["amount_micros"], 1);
    assert_eq!(site.balance(&account), (7_500_001, 0));
    let said = adjust("-7.500002", "too much").failed(1);
    assert!(said.contains("The wallet has 7.500001 available"), "{said}");
    let said = adjust("9223372036854.775807", "too much").failed(1);
    assert!(said.contains("cannot hold that much"), "{said}");
    assert_eq!(adjust("-7.500001", "all of it").json()["amount_micros"], -7_500_001);
    assert_eq!(site.balance(&account), (0, 0));

    for (amount, reason) in
        [("0", "x"), ("-0.00", "x"), ("1.0000001", "x"), ("1", ""), ("1", "a\nb"), ("1", " ")]
    {
        let _said = adjust(amount, reason).failed(2);
    }
    let _said = adjust("1", &"x".repeat(201)).failed(2);
    let _said = site.cli(&["wallet", "adjust", "main", "1"]).failed(2);
    let _said = site.cli(&["wallet", "adjust", "nobody", "1", "--reason", "x"]).failed(1);
    assert_eq!(site.balance(&account), (0, 0));
    let shown = site.cli(&["wallet", "adjust", "main", "3", "--reason", "shown"]).ok();
    assert!(shown.contains("shown") && shown.contains("3.00"), "{shown}");
    site.verify();
}

#[test]
fn refunds_that_race_give_the_charge_back_once() {
    const OFFERS: i64 = 6;
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let (id, charge) = completed(&gateway, &site, &account);
    let half = units(charge / 2);
    let made = std::thread::scope(|scope| {
        let offer = || site.cli(&["wallet", "refund", &id, &half]).code;
        let offers: Vec<_> = (0..OFFERS).map(|_| scope.spawn(offer)).collect();
        offers.into_iter().map(|offer| offer.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(made.iter().filter(|code| **code == Some(0)).count(), 2, "{made:?}");
    assert!(made.iter().all(|code| [Some(0), Some(1)].contains(code)), "{made:?}");
    assert_eq!(site.balance(&account), (10_000_000 - charge + charge / 2 * 2, 0));
    site.verify();
}

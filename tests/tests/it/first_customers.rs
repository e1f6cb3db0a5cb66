//! *Add customers and take their money*, followed to the letter: every command of the page runs in an empty folder, in
//! its order. The page is about money, so the test also reads the files that the page promises: a command that exits
//! with 0 and writes an empty statement would not be found otherwise. Only ports and placeholders differ.

use holdfast_tests::site::text;
use holdfast_tests::{Ran, Site};

use crate::first_day::{ADMIN, PUBLIC};
use crate::readme::{blocks, printed, shell};

const PAGE: &str = include_str!("../../../docs/tutorials/add-customers-and-take-their-money.md");
const SERVE: &str = "holdfast serve\n";

#[test]
fn a_customer_pays_calls_is_refunded_and_has_a_statement() {
    let site = Site::empty();
    site.write("holdfast.toml", blocks(PAGE, "toml")[0]);
    let commands = blocks(PAGE, "sh");
    let [token, set_up, serve, create, pay, payments, over_http, rest @ ..] = &commands[..] else {
        panic!("{commands:#?}")
    };
    let [issue, invite, call, low, operations, refund, adjust, statement, export, margin, verify] =
        rest
    else {
        panic!("{rest:#?}")
    };
    drop(Ran::of(&mut shell(&site, token)).ok());
    let mut lines = set_up.lines();
    let first = [lines.next().unwrap(), lines.next().unwrap()].join("\n");
    let run = |lines: &str| Ran::of(&mut shell(&site, &format!("{first}\n{lines}"))).ok();
    drop(run(&lines.collect::<Vec<_>>().join("\n")));
    assert_eq!(*serve, SERVE);
    let mut command = shell(&site, &format!("{first}\nexec {SERVE}"));
    command.env("HOLDFAST_LISTEN", "127.0.0.1:0").env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
    let gateway = site.start(command);
    let public = gateway.address().to_string();
    let admin = gateway.admin_address().to_string();
    let shown = [PUBLIC, ADMIN].map(|port| format!("127.0.0.1:{port}"));
    let at = |lines: &str| lines.replace(&shown[0], &public).replace(&shown[1], &admin);

    drop(run(create));
    let paid = run(pay);
    assert_eq!(run(pay), paid, "a payment that is sent twice is booked once");
    let admin_key = printed(&run(payments), "hfa_");
    let wallets = run("holdfast wallet list --json");
    let wallets: serde_json::Value = serde_json::from_str(&wallets).unwrap();
    let over_http = at(over_http).replace("hfa_...", &admin_key);
    let over_http =
        over_http.replace("WALLET_ID=...", &format!("WALLET_ID={}", text(&wallets[0], "id")));
    let booked = run(&over_http);
    assert!(booked.contains("pi_3PqB"), "{booked}");
    assert_eq!(run(&over_http), booked, "a webhook that comes again books nothing");

    let key = printed(&run(issue), "hfk_");
    assert!(run(invite).contains("/link/"));
    let answer = run(&at(call).replace("hfk_...", &key));
    assert!(answer.contains("customer_charge_micros"), "{answer}");
    assert!(run(low).contains("wallet.low"));
    assert!(run(operations).contains("holdfast/sim-1"));
    let refunded = run(&refund.replace("chatcmpl_...", &printed(&answer, "chatcmpl_")));
    assert!(refunded.contains("late answer"), "{refunded}");
    drop(run(adjust));

    let statement = run(statement);
    for row in ["opening", "deposit", "settle", "refund", "adjust", "closing"] {
        assert!(statement.contains(row), "no {row} in {statement}");
    }
    drop(run(export));
    let file = std::fs::read_to_string(site.path("month.csv")).unwrap();
    for cell in ["cus_17", "pi_3PqA", "pi_3PqB", "invoice 7", "charge", "adjustment"] {
        assert!(file.contains(cell), "no {cell} in {file}");
    }
    assert!(
        file.trim_end().ends_with(",5"),
        "two deposits, a charge, a refund, an adjustment: {file}"
    );
    assert!(run(margin).contains("provider_cost"));
    assert!(run(verify).contains("yes"));
    gateway.stop();
}

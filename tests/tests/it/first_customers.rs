//! *Add customers and take their money*, followed to the letter: every command of the page runs in an empty folder, in
//! its order. The page is about money, so the test also reads the files that the page promises: a command that exits
//! with 0 and writes an empty statement would not be found otherwise. Only ports and placeholders differ.

use holdfast_tests::site::text;
use holdfast_tests::{Gateway, Ran, Site};

use crate::console::{get_from, post_to, session_named, sign_in_at};
use crate::first_day::{ADMIN, PUBLIC};
use crate::readme::{blocks, printed, shell};

const PAGE: &str = include_str!("../../../docs/tutorials/add-customers-and-take-their-money.md");
const SERVE: &str = "holdfast serve\n";

#[test]
fn a_customer_pays_calls_is_refunded_and_has_a_statement() {
    let site = Site::empty();
    let [models, console] = blocks(PAGE, "toml")[..] else { panic!("two blocks of configuration") };
    site.write("holdfast.toml", models);
    let commands = blocks(PAGE, "sh");
    let [token, set_up, serve, create, pay, payments, over_http, rest @ ..] = &commands[..] else {
        panic!("{commands:#?}")
    };
    let [issue, invite, call, low, operations, refund, adjust, statement, verify, export, margin] =
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
    let start = || {
        let mut command = shell(&site, &format!("{first}\nexec {SERVE}"));
        command.env("HOLDFAST_LISTEN", "127.0.0.1:0").env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
        site.start(command)
    };
    let gateway = start();

    drop(run(create));
    let paid = run(pay);
    assert_eq!(run(pay), paid, "a payment that is sent twice is booked once");
    let admin_key = printed(&run(payments), "hfa_");
    let wallets = run("holdfast wallet list --json");
    let wallets: serde_json::Value = serde_json::from_str(&wallets).unwrap();
    let over_http = at(&gateway, over_http).replace("hfa_...", &admin_key);
    let over_http =
        over_http.replace("WALLET_ID=...", &format!("WALLET_ID={}", text(&wallets[0], "id")));
    let booked = run(&over_http);
    assert!(booked.contains("pi_3PqB"), "{booked}");
    assert_eq!(run(&over_http), booked, "a webhook that comes again books nothing");

    let key = printed(&run(issue), "hfk_");
    gateway.stop();
    site.write("holdfast.toml", &format!("{models}{}", console.replace(":8083", ":0")));
    let gateway = start();
    check_holder(&gateway, &run(invite));
    let answer = run(&at(&gateway, call).replace("hfk_...", &key));
    assert!(answer.contains("customer_charge_micros"), "{answer}");
    assert!(run(low).contains("wallet.low"));
    let listed = run(operations);
    assert!(listed.contains("holdfast/sim-1"));
    let operation = listed.split_whitespace().find(|word| word.len() == 36).unwrap();
    let refunded = run(&refund.replace("OPERATION_ID", operation));
    assert!(refunded.contains("late answer"), "{refunded}");
    drop(run(adjust));

    assert!(run(verify).contains("yes"));
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
    gateway.stop();
}

/// A command of the page with the addresses of this gateway.
fn at(gateway: &Gateway, lines: &str) -> String {
    let addresses = [(PUBLIC, gateway.address()), (ADMIN, gateway.admin_address())];
    addresses.iter().fold(lines.to_owned(), |lines, (port, address)| {
        lines.replace(&format!("127.0.0.1:{port}"), &address.to_string())
    })
}

/// Bob sets a password by the link, signs in on the listener that the page adds, and reads what the page promises.
fn check_holder(gateway: &Gateway, invited: &str) {
    let console = gateway.console_address();
    let link = invited.split_whitespace().find_map(|word| word.split_once("/link/")).unwrap();
    let password = "password=correct+horse+battery&again=correct+horse+battery";
    assert_eq!(post_to(console, &format!("/link/{}", link.1), password, "").status, 303);
    let signed_in = sign_in_at(console, "bob@example.com");
    let cookie = session_named("holdfast-holder", &signed_in);
    let home = get_from(console, "/", &cookie);
    assert!(home.status == 200 && home.text().contains("acme"), "{home:?}");
    for path in ["/keys", "/usage", "/payments", "/people"] {
        assert_eq!(get_from(console, path, &cookie).status, 200, "{path}");
    }
}

//! Statements: their rows add up to the balance, on every page, and their files open in a spreadsheet.

use holdfast_accounts::{PostingOrder, Principal};
use holdfast_domain::Micros;
use holdfast_domain::admin::{DepositReference, PostingDetails, Role};

use super::world::{World, reference, request, visitor_of};

fn micros(cell: &str) -> i64 {
    if cell == "–" {
        return 0;
    }
    let number = cell.replace(',', "");
    number.parse::<Micros>().unwrap().get()
}

#[tokio::test]
async fn the_rows_of_all_pages_add_up_to_the_balance() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000_000_000).await.wallet.id;
    let key = world.api_key(wallet, "prod").await;
    let mut dice: u64 = 0x9E37_79B9_7F4A_7C15;
    for _ in 0..90 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let amount = i64::try_from(dice >> 44).unwrap() + 1;
        let local = Principal::local();
        let details = PostingDetails::default();
        match dice >> 60 {
            0..6 => {
                let order = PostingOrder { amount: Micros::new(amount), currency: None, details };
                world
                    .accounts
                    .deposit(&local, &request(), &reference(wallet), order)
                    .await
                    .unwrap();
            }
            6..10 => {
                let order = PostingOrder { amount: Micros::new(-amount), currency: None, details };
                world.accounts.adjust(&local, &request(), &reference(wallet), order).await.unwrap();
            }
            10..15 => drop(world.completed(&key, 20).await),
            _ => drop(world.running(&key).await),
        }
    }
    let record = world.record(wallet).await.wallet;
    let mut expected = (record.available.get(), record.held.get());
    let mut page = format!("/wallets/{wallet}/statement?view=journal");
    let (mut pages, mut entries) = (0, 0);
    loop {
        let shown = world.get(&world.owner, &page).await;
        let rows = shown.is(200).rows("Journal of");
        let [first, middle @ .., last] = rows.as_slice() else { panic!("{}", shown.body) };
        assert_eq!((first[1].as_str(), last[1].as_str()), ("Balance before", "Balance after"));
        assert_eq!((micros(&last[4]), micros(&last[5])), expected, "page {pages}");
        let mut balance = (micros(&first[4]), micros(&first[5]));
        expected = balance;
        for row in middle {
            balance = (balance.0 + micros(&row[2]), balance.1 + micros(&row[3]));
            assert_eq!((micros(&row[4]), micros(&row[5])), balance, "{row:?}");
        }
        assert_eq!((micros(&last[4]), micros(&last[5])), balance);
        (pages, entries) = (pages + 1, entries + middle.len());
        // The month may have turned while the book was written.
        let before = shown.link("Month before").filter(|_| expected != (0, 0));
        let Some(next) = shown.link("Earlier entries").or(before) else { break };
        page = next;
    }
    assert_eq!(expected, (0, 0));
    assert!(pages >= 3 && entries > 100, "{pages} pages of {entries} entries");
}

#[tokio::test]
async fn a_month_leads_to_those_beside_it() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await.wallet.id;
    let base = format!("/wallets/{wallet}/statement");
    let page = format!("{base}?month=2026-01");
    let shown = world.get(&world.owner, &page).await;
    shown.is(200).has("Statement of 2026-01");
    let rows = shown.rows("Statement of");
    assert_eq!(rows.len(), 2, "nothing had moved by then: {rows:?}");
    let before = shown.link("Month before").unwrap();
    assert_eq!(before, format!("{base}?month=2025-12"));
    assert_eq!(shown.link("Month after").unwrap(), format!("{base}?month=2026-02"));
    let now = world.get(&world.owner, &base).await;
    assert_eq!(now.link("Month after"), None);
    let journal = world.get(&world.owner, &now.link("Journal").unwrap()).await;
    let before = journal.is(200).has("Journal of").link("Month before").unwrap();
    world.get(&world.owner, &before).await.is(200).has("Journal of");
    for day in ["2026-11", "2026-11-31", "x"] {
        world.get(&world.owner, &format!("{base}?on={day}")).await.is(422);
    }
    for month in ["2026", "2026-13", "x"] {
        world.get(&world.owner, &format!("{base}?month={month}")).await.is(422);
    }
}

#[tokio::test]
async fn a_month_is_a_file_that_has_no_formula() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await.wallet.id;
    let address = world.open(&world.owner, &format!("/wallets/{wallet}/adjust")).await;
    let fields = [("amount", "-0.0005"), ("reason", "=HYPERLINK(\"http://evil\")")];
    world.confirm(&world.owner, &address, &fields).await.is(303);
    let shown = world.get(&world.owner, &format!("/wallets/{wallet}/statement")).await;
    let file = world.get(&world.owner, &shown.link("Statement as CSV").unwrap()).await;
    assert_eq!(file.is(200).headers["content-type"], "text/csv; charset=utf-8; header=present");
    let name = file.headers["content-disposition"].to_str().unwrap();
    assert!(name.starts_with("attachment; filename=\"statement-acme-20"), "{name}");
    file.has("at,kind,debit").has("'=HYPERLINK").has(",500,0,").has("closing");
    let lines: Vec<_> = file.body.lines().collect();
    assert_eq!(lines.len(), 5, "head, opening, two entries, closing: {}", file.body);
}

#[tokio::test]
async fn payments_of_all_wallets_have_files_of_two_months() {
    let world = World::new().await;
    let acme = world.wallet("acme", 1_000).await.wallet.id;
    world.wallet("other", 2_000).await;
    let key = world.api_key(acme, "prod").await;
    world.completed(&key, 20).await;
    // One click from Home, and one more to either file.
    let home = world.get(&world.owner, "/").await;
    assert!(home.is(200).links().contains(&"/payments".to_owned()), "{:?}", home.links());
    let shown = world.get(&world.owner, "/payments").await;
    shown.is(200).has("acme").has("other").has("UTC day").has("/usage");
    let file = world.get(&world.owner, &shown.link("File (this month)").unwrap()).await;
    let name = file.is(200).headers["content-disposition"].to_str().unwrap().to_owned();
    assert!(name.starts_with("attachment; filename=\"ledger-20"), "{name}");
    let lines: Vec<_> = file.body.lines().collect();
    assert_eq!(lines.len(), 5, "head, two deposits, a charge, closing: {}", file.body);
    assert!(lines[3].contains(",charge,acme,"), "{}", file.body);
    assert!(lines[4].ends_with(",3"), "{}", file.body);
    let before = world.get(&world.owner, &shown.link("File (last month)").unwrap()).await;
    assert_eq!(before.is(200).body.lines().count(), 2, "{}", before.body);
    let refunds = world.get(&world.owner, "/payments?kind=refund").await;
    refunds.is(200).has("No payments yet.").has_not("acme");
    let own = world.get(&visitor_of(Role::HolderViewer, acme), "/payments").await;
    own.is(200).has("acme").has_not("other");
    world.get(&world.owner, "/payments?kind=x").await.is(422);
    // Usage says which moment counts there, and leads here.
    world.get(&world.owner, "/usage").await.is(200).has("/payments");
}

#[tokio::test]
async fn a_day_has_one_line_for_its_requests_and_one_for_a_payment_with_its_reference() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await.wallet.id;
    let local = Principal::local();
    for (number, micros) in [(1, 5_000_000), (2, 7_000_000)] {
        let reference_of = DepositReference::new("stripe", &format!("pi_{number}"));
        let details = PostingDetails { reference: Some(reference_of), ..PostingDetails::default() };
        let order = PostingOrder { amount: Micros::new(micros), currency: None, details };
        world.accounts.deposit(&local, &request(), &reference(wallet), order).await.unwrap();
    }
    let key = world.api_key(wallet, "prod").await;
    let mut charged = 0;
    for prompt in [20, 30, 40] {
        charged += world.completed(&key, prompt).await.phase.charge().unwrap().get();
    }
    world.running(&key).await;
    let page = format!("/wallets/{wallet}/statement");
    let shown = world.get(&world.owner, &page).await;
    let rows = shown.is(200).rows("Statement of");
    let [opening, .., usage, closing] = rows.as_slice() else { panic!("{}", shown.body) };
    assert_eq!((opening[1].as_str(), opening[4].as_str()), ("Opening balance", "0.000000"));
    let payments: Vec<_> = rows.iter().filter(|row| row[1] == "Deposit").collect();
    let payments: Vec<_> = payments.iter().map(|row| (row[2].as_str(), row[3].as_str())).collect();
    assert_eq!(payments, [("stripe pi_1", "5.000000"), ("stripe pi_2", "7.000000")]);
    assert_eq!(usage[1], "Usage, 3 requests");
    let of = |micros: i64| crate::kit::exact(Micros::new(micros));
    assert_eq!(usage[3], of(-charged));
    // A hold leaves the funds as they are, and is named beside them.
    let funds = of(12_000_000 - charged);
    assert_eq!(
        (usage[4].clone(), closing[4].clone()),
        (funds.clone(), format!("{funds} {} on hold", of(100)))
    );
    let day = shown.links().into_iter().find(|link| link.contains("on=")).unwrap();
    let shown = world.get(&world.owner, &day).await;
    let rows = shown.is(200).rows("Requests and payments of");
    let names: Vec<_> = rows.iter().map(|row| row[1].as_str()).collect();
    let charges = ["Charge"; 3];
    let expected = [&["Opening balance", "Deposit", "Deposit"][..], &charges, &["Closing balance"]];
    assert_eq!(names, expected.concat());
    assert!(rows[3][2].contains("/") && rows[3][3] == "prod", "{rows:?}");
    let journal = world.get(&world.owner, &format!("{page}?view=journal")).await;
    let kinds: Vec<_> = journal.rows("Journal of").iter().map(|row| row[1].clone()).collect();
    assert!(kinds.contains(&"Unused hold returned".to_owned()), "{kinds:?}");
}

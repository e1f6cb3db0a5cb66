//! Statements: their rows add up to the balance, on every page, and their files open in a spreadsheet.

use holdfast_accounts::{PostingOrder, Principal};
use holdfast_domain::Micros;
use holdfast_domain::admin::{PostingDetails, Role};

use super::world::{World, reference, request, visitor_of};

fn micros(cell: &str) -> i64 {
    if cell == "–" {
        return 0;
    }
    let number = cell.strip_suffix(" USD").unwrap_or_else(|| panic!("{cell}")).replace(',', "");
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
    let mut page = format!("/wallets/{wallet}");
    let (mut pages, mut entries) = (0, 0);
    loop {
        let shown = world.get(&world.owner, &page).await;
        let rows = shown.is(200).rows("Statement of");
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
    let page = format!("/wallets/{wallet}?month=2026-01");
    let shown = world.get(&world.owner, &page).await;
    shown.is(200).has("Statement of 2026-01");
    let rows = shown.rows("Statement of");
    assert_eq!(rows.len(), 2, "nothing had moved by then: {rows:?}");
    let before = shown.link("Month before").unwrap();
    assert_eq!(before, format!("/wallets/{wallet}?month=2025-12"));
    assert_eq!(shown.link("Month after").unwrap(), format!("/wallets/{wallet}?month=2026-02"));
    let now = world.get(&world.owner, &format!("/wallets/{wallet}")).await;
    assert_eq!(now.link("Month after"), None);
    for month in ["2026", "2026-13", "x"] {
        world.get(&world.owner, &format!("/wallets/{wallet}?month={month}")).await.is(422);
    }
}

#[tokio::test]
async fn a_month_is_a_file_that_has_no_formula() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await.wallet.id;
    let address = world.open(&world.owner, &format!("/wallets/{wallet}/adjust")).await;
    let fields = [("amount", "-0.0005"), ("reason", "=HYPERLINK(\"http://evil\")")];
    world.confirm(&world.owner, &address, &fields).await.is(303);
    let shown = world.get(&world.owner, &format!("/wallets/{wallet}")).await;
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

//! Every number on every page equals the rows behind it, on page seven too: wallets, one of them with its statement
//! and its postings, API keys, operations, usage and its file, prices. Over a random book, on a file and on a server.

use std::collections::BTreeMap;

use holdfast_accounts::{KeyOrder, PostingOrder, Principal, Reference};
use holdfast_domain::admin::PostingDetails;
use holdfast_domain::credential::Grant;
use holdfast_domain::operation::Phase;
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{ApiKeyId, Micros, Operation, PostingId, WalletId};
use holdfast_testkit::Dice;
use uuid::Uuid;

use crate::tests::book::{
    Book, OpsWorld, amount, amounts, behind_rows, book, fact, owner, pages_of, request, rows, total,
};

const SEED: u64 = 0xb00c;
/// Rows that fill six pages of a list, and a part of the seventh.
const MANY: usize = 310;

/// A book of operations, with what was moved beside them.
struct WholeBook {
    book: Book,
    deposits: Vec<i64>,
    adjustments: Vec<i64>,
    refunds: BTreeMap<Uuid, i64>,
    postings: Vec<(PostingId, i64)>,
}

fn reference(id: [u8; 16]) -> Reference {
    Reference::Id(Uuid::from_bytes(id))
}

fn order(micros: i64) -> PostingOrder {
    PostingOrder { amount: Micros::new(micros), currency: None, details: PostingDetails::default() }
}

async fn whole_book(world: &OpsWorld) -> WholeBook {
    let mut dice = Dice::new(SEED);
    let mut roll = |most: u64| i64::try_from(dice.roll(most)).unwrap();
    let book = book(world, SEED, MANY, 4).await;
    let (local, wallet) = (Principal::local(), reference(book.wallets[0].to_bytes()));
    let (mut deposits, mut adjustments, mut postings) = (vec![9_000_000], Vec::new(), Vec::new());
    for _ in 0..MANY {
        let micros = roll(900_000) + 1;
        let made = world.accounts.deposit(&local, &request(), &wallet, order(micros)).await;
        postings.push((made.unwrap().thing.listing.posting.id, micros));
        deposits.push(micros);
    }
    for _ in 0..9 {
        let micros = -1 - roll(5_000);
        world.accounts.adjust(&local, &request(), &wallet, order(micros)).await.unwrap();
        adjustments.push(micros);
    }
    let mut refunds = BTreeMap::new();
    let charged = |it: &&Operation| {
        it.wallet == book.wallets[0] && it.phase.charge().is_some_and(|it| it.get() > 1)
    };
    for operation in book.operations.iter().filter(charged).take(20) {
        let micros = roll(u64::try_from(operation.phase.charge().unwrap().get()).unwrap()) + 1;
        let id = operation.id;
        world.accounts.refund(&local, &request(), id, order(micros)).await.unwrap();
        refunds.insert(Uuid::from_bytes(id.to_bytes()), micros);
    }
    WholeBook { book, deposits, adjustments, refunds, postings }
}

impl WholeBook {
    /// Ended operations of a wallet or an API key, or all of them.
    fn ended(
        &self,
        wallet: Option<WalletId>,
        key: Option<ApiKeyId>,
    ) -> impl Iterator<Item = &Operation> {
        self.book.operations.iter().filter(move |it| {
            wallet.is_none_or(|wallet| it.wallet == wallet)
                && key.is_none_or(|key| it.api_key == key)
        })
    }

    fn refunded(&self, operation: &Operation) -> i64 {
        let id = Uuid::from_bytes(operation.id.to_bytes());
        self.refunds.get(&id).copied().unwrap_or(0)
    }

    /// Sums of a row of usage over these operations: counts, charge, refunds, exposure.
    fn usage<'a>(&self, operations: impl Iterator<Item = &'a Operation>) -> [i64; 6] {
        let mut sums = [0; 6];
        for it in operations {
            sums[0] += i64::from(matches!(it.phase, Phase::Completed { .. }));
            sums[1] += i64::from(matches!(it.phase, Phase::Refused { .. }));
            sums[2] += i64::from(matches!(it.phase, Phase::Abandoned { .. }));
            sums[3] += it.phase.charge().map_or(0, Micros::get);
            sums[4] += self.refunded(it);
            sums[5] += it.exposure().map_or(0, Micros::get);
        }
        sums
    }
}

/// The same numbers of a row of a table.
fn told(row: &BTreeMap<String, String>) -> [i64; 6] {
    let cell = |name: &str, other: &str| row.get(name).unwrap_or_else(|| &row[other]);
    let count = |name: &str, other: &str| cell(name, other).replace(',', "").parse().unwrap();
    let money = |name: &str, other: &str| amount(cell(name, other));
    [
        count("Completed", "Completed"),
        count("Refused", "Refused"),
        count("Outcome unknown", "Outcome unknown"),
        money("Charge", "Charged"),
        money("Refunded", "Refunded"),
        money("At risk", "At risk"),
    ]
}

fn sum(rows: impl Iterator<Item = [i64; 6]>) -> [i64; 6] {
    rows.fold([0; 6], |sum, row| std::array::from_fn(|at| sum[at] + row[at]))
}

async fn usage_is_of_the_rows(world: &OpsWorld, whole: &WholeBook) {
    let all = whole.usage(whole.ended(None, None));
    for query in [
        "first=hour",
        "first=day&second=wallet",
        "first=month",
        "first=model&second=api_key",
        "first=api_key&second=hour",
        "first=wallet",
    ] {
        let pages = pages_of(world, &format!("/usage?{query}")).await;
        let listed = pages.iter().flat_map(|html| rows(html, "Breakdown"));
        assert_eq!(sum(listed.map(|row| told(&row))), all, "{query}");
        assert_eq!(told(&total(&pages[0], "Breakdown")), all, "{query}");
        let drawn: i64 = amounts(&pages[0], "legend").iter().map(|(_, amount)| amount).sum();
        assert_eq!(drawn, all[3] - all[4], "{query}: charges less refunds");
        let file = world.get(&owner(), &format!("/usage.csv?{query}")).await.html;
        let mut lines = file.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let head = lines.next().unwrap();
        let lines: Vec<_> = lines.collect();
        let column = |name: &str| -> i64 {
            let at = head.iter().position(|it| *it == name).unwrap_or_else(|| panic!("{head:?}"));
            lines.iter().map(|line| line[at].parse::<i64>().unwrap_or(0)).sum()
        };
        let names = [
            "completed",
            "refused",
            "abandoned",
            "charge_micros",
            "refunded_micros",
            "exposure_micros",
        ];
        assert_eq!(names.map(column), all, "{query} as a file");
    }
    for wallet in &whole.book.wallets {
        let html = world.page(&owner(), &format!("/usage?wallet={wallet}")).await;
        let own = whole.usage(whole.ended(Some(*wallet), None));
        assert_eq!(told(&total(&html, "Breakdown")), own);
    }
}

async fn operations_are_of_the_rows(world: &OpsWorld, whole: &WholeBook) {
    let pages = pages_of(world, "/operations").await;
    assert_eq!(pages.len(), 7, "the seventh page is there");
    let shown: Vec<_> = pages.iter().flat_map(|html| rows(html, "Newest first")).collect();
    assert_eq!(shown.len(), whole.book.operations.len());
    let led: Vec<_> = pages.iter().flat_map(|html| behind_rows(html, "Newest first")).collect();
    let keys = whole.book.api_keys.iter().enumerate();
    let names: BTreeMap<_, _> = keys.map(|(at, id)| (*id, format!("key-{at}"))).collect();
    for operation in &whole.book.operations {
        let address = format!("/operations/{}", operation.id);
        let row = &shown[led.iter().position(|href| *href == address).unwrap()];
        let is_first = operation.wallet == whole.book.wallets[0];
        assert_eq!(row["Wallet"], if is_first { "acme" } else { "globex" });
        assert_eq!(row["API key"], names[&operation.api_key]);
        let charge = operation.phase.charge().map(Micros::get);
        assert_eq!((row["Charge"] != "–").then(|| amount(&row["Charge"])), charge, "{row:?}");
    }
    for operation in whole.book.operations.iter().step_by(7) {
        let html = world.page(&owner(), &format!("/operations/{}", operation.id)).await;
        let money = |name: &str| amount(&fact(&html, name).unwrap());
        assert_eq!(money("Hold"), operation.hold.get());
        assert_eq!(money("Refunded"), whole.refunded(operation));
        if let Some(charge) = operation.phase.charge() {
            assert_eq!(money("Charge"), charge.get());
        }
    }
}

async fn keys_are_of_the_rows(world: &OpsWorld, whole: &WholeBook) {
    let wallet = reference(whole.book.wallets[1].to_bytes());
    for part in 0..MANY.div_ceil(100) {
        let order = |number: usize| KeyOrder {
            name: format!("spare-{part}-{number}").parse().ok(),
            external_id: None,
            grant: Grant::default(),
        };
        let orders: Vec<_> = (0..100).map(order).collect();
        let local = Principal::local();
        world.accounts.issue_api_keys(&local, &request(), &wallet, &orders).await.unwrap();
    }
    let pages = pages_of(world, "/keys").await;
    assert!(pages.len() >= 7, "{}", pages.len());
    let mut names: Vec<_> = pages
        .iter()
        .flat_map(|html| rows(html, "API keys"))
        .map(|row| row["Name"].clone())
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((count, names.len()), (404, 404), "each once");
    for key in &whole.book.api_keys {
        let html = world.page(&owner(), &format!("/keys/{key}")).await;
        let own = whole.usage(whole.ended(None, Some(*key)));
        let shown = rows(&html, "This month");
        assert_eq!(sum(shown.iter().map(told)), own);
    }
}

async fn postings_are_of_the_rows(world: &OpsWorld, whole: &WholeBook) {
    let wallet = whole.book.wallets[0];
    let refunds = whole.refunds.values().copied().collect();
    for (kind, title, expected) in [
        ("deposit", "Deposits", &whole.deposits),
        ("adjustment", "Adjustments", &whole.adjustments),
        ("refund", "Refunds", &refunds),
    ] {
        let pages = pages_of(world, &format!("/payments?kind={kind}&wallet={wallet}")).await;
        assert_eq!(pages.len(), expected.len().div_ceil(50), "{kind}");
        let shown = pages.iter().flat_map(|html| rows(html, title));
        let mut shown: Vec<_> = shown.map(|row| amount(&row["Amount"])).collect();
        let mut expected = expected.clone();
        shown.sort_unstable();
        expected.sort_unstable();
        assert_eq!(shown, expected, "{kind}");
    }
    for (id, micros) in whole.postings.iter().step_by(31) {
        let html = world.page(&owner(), &format!("/postings/{id}")).await;
        assert_eq!(amount(&fact(&html, "Amount").unwrap()), *micros);
    }
}

/// Balance of a wallet from the single rows: available and held.
fn balance(whole: &WholeBook, wallet: WalletId) -> (i64, i64) {
    let own = || whole.book.operations.iter().filter(|it| it.wallet == wallet);
    let held: i64 = own().filter(|it| it.phase.holds()).map(|it| it.hold.get()).sum();
    let charged = own().filter(|it| matches!(it.phase, Phase::Completed { .. }));
    let charged: i64 = charged.map(|it| it.phase.charge().unwrap().get()).sum();
    let posted: i64 = if wallet == whole.book.wallets[0] {
        whole.deposits.iter().chain(&whole.adjustments).chain(whole.refunds.values()).sum()
    } else {
        9_000_000
    };
    (posted - charged - held, held)
}

async fn wallets_are_of_the_rows(world: &OpsWorld, whole: &WholeBook) {
    let mut expected = BTreeMap::new();
    for (name, wallet) in ["acme", "globex"].into_iter().zip(&whole.book.wallets) {
        expected.insert(name.to_owned(), balance(whole, *wallet));
    }
    for number in 0..MANY {
        let micros = i64::try_from(number * 17 % 1_001).unwrap();
        world.wallet(&format!("customer-{number}"), micros).await;
        expected.insert(format!("customer-{number}"), (micros, 0));
    }
    let pages = pages_of(world, "/wallets").await;
    assert_eq!(pages.len(), 7);
    let shown = pages.iter().flat_map(|html| rows(html, "Wallets"));
    let shown: BTreeMap<_, _> = shown
        .map(|row| (row["Name"].clone(), (amount(&row["Available"]), amount(&row["Held"]))))
        .collect();
    assert_eq!(shown, expected);
}

async fn a_statement_is_of_the_rows(world: &OpsWorld, whole: &WholeBook) {
    let wallet = whole.book.wallets[0];
    let (available, held) = balance(whole, wallet);
    let html = world.page(&owner(), &format!("/wallets/{wallet}")).await;
    let first = format!("/wallets/{wallet}/statement?view=journal");
    assert_eq!(amount(&fact(&html, "Available").unwrap()), available);
    assert_eq!(amount(&fact(&html, "Held").unwrap()), held);
    let change = |text: &String| if text == "–" { 0 } else { amount(text) };
    let (mut path, mut pages, mut moved) = (Some(first), 0, (0, 0));
    while let Some(address) = path {
        let html = world.page(&owner(), &address).await;
        let shown = rows(&html, "Journal of");
        let [before, entries @ .., after] = shown.as_slice() else { panic!("{html}") };
        let end = (amount(&after["Available"]), amount(&after["On hold"]));
        assert_eq!(end, (available - moved.0, held - moved.1), "page {pages}");
        for row in entries {
            moved = (moved.0 + change(&row["Change"]), moved.1 + change(&row["Hold change"]));
        }
        let begin = (amount(&before["Available"]), amount(&before["On hold"]));
        assert_eq!(begin, (available - moved.0, held - moved.1), "page {pages}");
        pages += 1;
        let link = |text: &str| {
            let (before, _) = html.split_once(&format!("\">{text}</a>"))?;
            Some(before.rsplit_once("href=\"")?.1.replace("&#38;", "&"))
        };
        // The month may have turned while the book was written.
        let month = link("Month before").filter(|_| moved != (available, held));
        path = link("Earlier entries").or(month);
        assert!(pages < 50, "it leads on for ever");
    }
    assert_eq!(moved, (available, held));
    assert!(pages >= 7, "{pages}");
}

async fn prices_are_of_their_versions(world: &OpsWorld) {
    let html = world.page(&owner(), "/models").await;
    let shown = rows(&html, "Prices");
    let prices = world.accounts.prices(&Principal::local(), None, None).await.unwrap();
    let tiers: usize = prices.iter().map(|price| price.tariff.tiers().len() + 1).sum();
    assert_eq!(shown.len(), tiers);
    for price in &prices {
        let input = price.tariff.rates().rate(MeterKind::Input);
        let is_it = |row: &&BTreeMap<String, String>| {
            row["Prompt tokens"] == "any"
                && u64::try_from(amount(&row["Input per 1M"])).unwrap() == input
        };
        assert!(shown.iter().any(|row| is_it(&row)), "{input} is not in {shown:?}");
    }
}

async fn check(world: &OpsWorld) {
    let whole = whole_book(world).await;
    usage_is_of_the_rows(world, &whole).await;
    operations_are_of_the_rows(world, &whole).await;
    keys_are_of_the_rows(world, &whole).await;
    postings_are_of_the_rows(world, &whole).await;
    a_statement_is_of_the_rows(world, &whole).await;
    wallets_are_of_the_rows(world, &whole).await;
    prices_are_of_their_versions(world).await;
}

#[tokio::test]
async fn every_number_is_of_the_rows_behind_it() {
    check(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_every_number_is_of_the_rows_behind_it() {
    check(&OpsWorld::on_a_server().await).await;
}

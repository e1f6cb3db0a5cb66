//! Usage stays the sum of the rows, to the micro, whatever of it is summed already: a random book is
//! reported at every stage of its summing, by every key and filter, and compared with the rows that
//! the test itself has written.

mod altered;
mod exclusion;
pub(crate) mod steps;

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    Group, GroupBy, Grouping, Reports as _, Totals, UsageFilter, UsageQuery, UsageRow,
};
use holdfast_domain::billing::COST_MAX;
use holdfast_domain::credential::ApiKey;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Currency, Micros, Timestamp, WalletId};
use holdfast_store::Store;
use holdfast_store::usage::SummingProgress;
use holdfast_testkit::laws::tenant::Tenant;
use holdfast_testkit::{Dice, sample};

use crate::raw::Raw;
use crate::scratch::Home;
use crate::usage::{NOTHING, plus};

pub(crate) use self::steps::sum_all;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
/// The first days of two months, of 2026.
const OCTOBER: i64 = 20_727 * DAY;
const NOVEMBER: i64 = 20_758 * DAY;
/// The first operation is made two days before the end of October, and each next one so much later.
const BEGIN: i64 = NOVEMBER - 2 * DAY;
const STEP: i64 = 6 * 60_000_000;
/// Between two numbers: the book has several pages, and few rows.
const GAP: i64 = 37;

const MODELS: [&str; 2] = ["a/b", "c/=d"];
/// Attempts and the route of the last one. A reason may spell a character that no text can hold.
const ATTEMPTS: [(&str, &str); 3] = [
    ("[]", ""),
    (r#"[["east","ok",5,false]]"#, "east"),
    (r#"[["east","refused: \u0000",5,true],["=we\"st","ok",9,false]]"#, "=we\"st"),
];

/// An operation that the test has written.
struct Row {
    seq: i64,
    owner: usize,
    model: &'static str,
    attempts: (&'static str, &'static str),
    phase: &'static str,
    generation: i64,
    created: i64,
    finished: i64,
    hold: i64,
    charge: i64,
    cost: Option<i64>,
    source: &'static str,
    meters: [i64; 9],
    refunds: Vec<i64>,
}

/// A book and what is known of it.
struct Book {
    raw: Raw,
    owners: Vec<(Wallet, ApiKey)>,
    rows: Vec<Row>,
    dice: Dice,
    postings: i64,
}

impl Row {
    fn is_finished(&self) -> bool {
        matches!(self.phase, "completed" | "refused" | "abandoned")
    }

    fn has_usage(&self) -> bool {
        matches!(self.phase, "completed" | "recorded")
    }

    /// Columns that change with the phase.
    fn columns(&self) -> Vec<(&'static str, String)> {
        let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let when = |is: bool, value: String| if is { value } else { "NULL".to_owned() };
        let mut columns = vec![
            ("phase", text(self.phase)),
            ("generation", self.generation.to_string()),
            ("version", (self.generation + 1).to_string()),
            ("attempts", text(self.attempts.0)),
            ("finished_at", when(self.is_finished(), self.finished.to_string())),
            ("refusal", when(self.phase == "refused", text("request"))),
            ("meters_source", when(self.has_usage(), text(self.source))),
            ("charge", when(self.has_usage(), self.charge.to_string())),
            ("shortfall", when(self.has_usage(), self.shortfall().to_string())),
        ];
        let cost = self.cost.filter(|_| self.has_usage());
        columns.push(("provider_cost", cost.map_or("NULL".to_owned(), |it| it.to_string())));
        let meters = [
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
        for (name, count) in meters.into_iter().zip(self.meters) {
            columns.push((name, when(self.has_usage(), count.to_string())));
        }
        columns
    }

    fn shortfall(&self) -> i64 {
        if self.charge == self.hold { 7 } else { 0 }
    }

    fn totals(&self) -> Totals {
        let refunded: i64 = self.refunds.iter().sum();
        let cost = self.cost.filter(|cost| *cost <= COST_MAX.get());
        let is_excluded = self.cost != cost;
        match self.phase {
            "completed" => Totals {
                completed: 1,
                estimated: u64::from(self.source == "estimated"),
                meters: self.meters.map(|count| u64::try_from(count).unwrap()),
                charge: Micros::new(self.charge),
                shortfall: Micros::new(self.shortfall()),
                refunded: Micros::new(refunded),
                exposure: Micros::new(if is_excluded { self.hold } else { 0 }),
                costs_excluded: u64::from(is_excluded),
                costed: u64::from(cost.is_some()),
                provider_cost: Micros::new(cost.unwrap_or(0)),
                margin: Micros::new(cost.map_or(0, |cost| self.charge - refunded - cost)),
                ..NOTHING
            },
            "refused" => Totals { refused: 1, exposure: Micros::new(self.hold), ..NOTHING },
            "abandoned" => Totals { abandoned: 1, exposure: Micros::new(self.hold), ..NOTHING },
            _not_finished => NOTHING,
        }
    }
}

impl Book {
    /// Three wallets, one of them of another currency, and four API keys.
    async fn new(home: &impl Home, seed: u64) -> Self {
        let first = Tenant::new(home, 0).await;
        first.another_api_key().await;
        Tenant::new(home, 0).await;
        let mut euros = Tenant::new(home, 0).await;
        euros.wallet = sample::fresh::<WalletId>();
        let euro = "EUR".parse().unwrap();
        home.commands().create_wallet(euros.wallet, "=euros", euro).await.unwrap();
        euros.another_api_key().await;
        let wallets = home.lists().unwrap().all_wallets().await;
        let owner = |key: ApiKey| {
            let wallet = wallets.iter().find(|it| it.id == key.wallet).unwrap();
            (wallet.clone(), key)
        };
        let owners = home.lists().unwrap().all_api_keys().await.into_iter().map(owner).collect();
        let raw = Raw::open(home).await;
        Self { raw, owners, rows: Vec::new(), dice: Dice::new(seed), postings: 0 }
    }

    fn roll(&mut self, sides: u64) -> usize {
        usize::try_from(self.dice.roll(sides)).unwrap()
    }

    fn amount(&mut self, below: u64) -> i64 {
        i64::try_from(self.dice.roll(below)).unwrap()
    }

    fn blob(&self, bytes: [u8; 16]) -> String {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self.raw {
            Raw::File(_) => format!("x'{hex}'"),
            Raw::Server(_) => format!("decode('{hex}', 'hex')"),
        }
    }

    /// So many more operations, of all phases.
    async fn add(&mut self, count: i64) {
        for _ in 0..count {
            let at = i64::try_from(self.rows.len()).unwrap();
            let created = BEGIN + at * STEP;
            let hold = 1_000 + self.amount(1_000);
            let phases = ["completed", "completed", "completed", "completed", "refused"];
            let others = ["abandoned", "leased", "recorded", "open"];
            let phase = self.roll(9);
            let row = Row {
                seq: 5 + at * GAP,
                owner: self.roll(u64::try_from(self.owners.len()).unwrap()),
                model: MODELS[self.roll(2)],
                attempts: ATTEMPTS[self.roll(3)],
                phase: phases.iter().chain(&others).nth(phase).unwrap(),
                generation: 1,
                created,
                finished: created + self.amount(u64::try_from(20 * HOUR).unwrap()),
                hold,
                charge: (self.amount(2_200)).min(hold),
                cost: self.cost(),
                source: ["reported", "estimated"][self.roll(2)],
                meters: std::array::from_fn(|_meter| self.dice.roll(1_000).try_into().unwrap()),
                refunds: Vec::new(),
            };
            self.insert(&row).await;
            self.rows.push(row);
        }
    }

    async fn insert(&mut self, row: &Row) {
        let (wallet, key) = &self.owners[row.owner];
        let mut columns = row.columns();
        let bytes = |count: u32| format!("zeroblob({count})");
        columns.extend([
            ("seq", row.seq.to_string()),
            ("id", self.blob(id_of(row.seq))),
            ("wallet_id", self.blob(wallet.id.to_bytes())),
            ("api_key_id", self.blob(key.id.to_bytes())),
            ("model", format!("'{}'", row.model)),
            ("created_at", row.created.to_string()),
            ("admitted_at", row.created.to_string()),
            ("deadline", row.created.to_string()),
            ("hold", row.hold.to_string()),
            ("request_key", bytes(16)),
            ("claim", bytes(16)),
            ("incarnation", bytes(16)),
            ("server_secret", bytes(8)),
            ("fingerprint", bytes(32)),
            ("body_digest", bytes(32)),
            ("price_version", "'p'".to_owned()),
            ("node", "'n'".to_owned()),
        ]);
        for zero in [
            "fingerprint_version",
            "contract",
            "reserved_counters",
            "reserved_tokens",
            "cancel_asked",
        ] {
            columns.push((zero, "0".to_owned()));
        }
        let (names, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let (names, values) = (names.join(", "), values.join(", "));
        self.raw.run(&format!("INSERT INTO operations ({names}) VALUES ({values})")).await;
    }

    /// Brings operations further: runs end, open ones begin again, and charges are refunded.
    async fn go_on(&mut self) {
        for at in 0..self.rows.len() {
            let turn = self.roll(3);
            let amount = 1 + self.amount(20);
            let late = self.amount(u64::try_from(9 * HOUR).unwrap());
            let row = &mut self.rows[at];
            match (row.phase, turn) {
                ("leased" | "recorded", 0) => row.phase = "completed",
                ("leased", 1) => row.phase = "open",
                ("open", 0 | 1) => {
                    row.phase = "leased";
                    row.generation += 1;
                }
                ("completed", 0) => {
                    row.refunds.push(amount);
                    self.refund(at, amount).await;
                    continue;
                }
                _stays => continue,
            }
            // Later than its number says, by hours or by days.
            row.finished = row.created + DAY + late;
            let seq = row.seq;
            let set = row.columns().into_iter();
            let is_later = row.phase == "leased";
            let set = set.filter(|(name, _)| *name != "generation" || is_later);
            let set: Vec<_> = set.map(|(name, value)| format!("{name} = {value}")).collect();
            let set = set.join(", ");
            self.raw.run(&format!("UPDATE operations SET {set} WHERE seq = {seq}")).await;
        }
    }

    async fn refund(&mut self, at: usize, amount: i64) {
        self.postings += 1;
        let row = &self.rows[at];
        let wallet = self.blob(self.owners[row.owner].0.id.to_bytes());
        let (operation, id) = (self.blob(id_of(row.seq)), self.blob(id_of(-self.postings)));
        let created = BEGIN + self.postings;
        self.raw
            .run(&format!(
                "INSERT INTO postings (id, wallet_id, kind, operation_id, amount, created_at)
                 VALUES ({id}, {wallet}, 'refund', {operation}, {amount}, {created})"
            ))
            .await;
    }

    fn group(&self, row: &Row, by: GroupBy) -> Group {
        let floor = |span: i64| Timestamp::from_micros(row.finished / span * span);
        let (wallet, key) = &self.owners[row.owner];
        match by {
            GroupBy::Hour => Group::Hour(floor(HOUR)),
            GroupBy::Day => Group::Day(floor(DAY)),
            GroupBy::Month => {
                let start = if row.finished < NOVEMBER { OCTOBER } else { NOVEMBER };
                Group::Month(Timestamp::from_micros(start))
            }
            GroupBy::Model => Group::Model(row.model.to_owned()),
            GroupBy::Route => Group::Route(row.attempts.1.to_owned()),
            GroupBy::ApiKey => Group::ApiKey { name: key.name.clone(), id: key.id },
            GroupBy::Wallet => Group::Wallet { name: wallet.name.clone(), id: wallet.id },
        }
    }

    /// The report as it should be.
    fn expected(&self, query: &UsageQuery) -> Vec<UsageRow> {
        let UsageFilter { wallet, api_key, model, route } = &query.filter;
        let Period { from, to } = query.period;
        let mut sums: BTreeMap<(Group, Option<Group>, Currency), Totals> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.is_finished()) {
            let (of, key) = &self.owners[row.owner];
            let finished = Timestamp::from_micros(row.finished);
            let is_asked_for = wallet.is_none_or(|it| it == of.id)
                && api_key.is_none_or(|it| it == key.id)
                && model.as_ref().is_none_or(|it| it == row.model)
                && route.as_ref().is_none_or(|it| it == row.attempts.1)
                && from.is_none_or(|from| finished >= from)
                && to.is_none_or(|to| finished < to);
            if !is_asked_for {
                continue;
            }
            let mut groups = query.by.keys().map(|by| self.group(row, by));
            let (group, second) = (groups.next().unwrap(), groups.next());
            let sum = sums.entry((group, second, of.currency)).or_insert(NOTHING);
            *sum = plus(sum, &row.totals());
        }
        let row =
            |((group, second, currency), totals)| UsageRow { group, second, currency, totals };
        sums.into_iter().map(row).collect()
    }

    /// Every grouping, with filters and periods by the dice.
    fn queries(&mut self) -> Vec<UsageQuery> {
        let mut groupings: Vec<_> = GroupBy::ALL.into_iter().map(Grouping::by).collect();
        let pairs = GroupBy::ALL.into_iter().flat_map(|a| GroupBy::ALL.map(|b| (a, b)));
        groupings.extend(pairs.filter_map(|(a, b)| Grouping::by_both(a, b)));
        let count = groupings.len();
        assert_eq!(count, 7 + 42);
        let mut queries: Vec<_> = groupings.iter().copied().map(UsageQuery::all).collect();
        for by in groupings {
            let (wallet, key) = self.owners[self.dice.roll(4).try_into().unwrap_or(0)].clone();
            let filter = UsageFilter {
                wallet: (self.roll(3) == 0).then_some(wallet.id),
                api_key: (self.roll(3) == 0).then_some(key.id),
                model: (self.roll(3) == 0).then_some(MODELS[self.roll(2)].to_owned()),
                route: (self.roll(3) == 0).then_some(ATTEMPTS[self.roll(3)].1.to_owned()),
            };
            let from = BEGIN + self.amount(u64::try_from(3 * DAY).unwrap());
            let to = from + self.amount(u64::try_from(2 * DAY).unwrap());
            let whole = self.roll(2) == 0;
            let at = |moment: i64| {
                Some(Timestamp::from_micros(if whole { moment / HOUR * HOUR } else { moment }))
            };
            let period = match self.roll(4) {
                0 => Period::default(),
                1 => Period { from: at(from), to: None },
                2 => Period { from: None, to: at(to) },
                _both => Period { from: at(from), to: at(to) },
            };
            queries.push(UsageQuery { by, filter, period, rows_max: None });
        }
        // Within one hour, and to its very end.
        let within = |from: i64, to: i64| Period {
            from: Some(Timestamp::from_micros(from)),
            to: Some(Timestamp::from_micros(to)),
        };
        let by = Grouping::by(GroupBy::Model);
        for (from, to) in [(NOVEMBER + 1, NOVEMBER + HOUR - 1), (NOVEMBER + 1, NOVEMBER + HOUR)] {
            let filter = UsageFilter::default();
            queries.push(UsageQuery { by, filter, period: within(from, to), rows_max: None });
        }
        queries
    }

    async fn check(&mut self, store: &Store, stage: &str) {
        let mut found = 0;
        for query in self.queries() {
            let rows = store.usage(query.clone()).await.unwrap();
            assert_eq!(rows, self.expected(&query), "{stage}: {query:?}");
            found += rows.len();
        }
        assert!(found > 500, "{stage}: {found} groups");
        let found = store.verify().await.unwrap();
        let wrong: Vec<_> =
            found.mismatches.iter().filter(|it| it.sentence.starts_with("its usage")).collect();
        assert!(wrong.is_empty(), "{stage}: {wrong:?}");
    }

    async fn count(&mut self, of: &str) -> i64 {
        self.raw.number(&format!("SELECT count(*) FROM {of}")).await
    }
}

/// An id for each number.
fn id_of(seq: i64) -> [u8; 16] {
    i128::from(seq).to_be_bytes()
}

async fn a_report_is_the_sum_of_the_rows_at_every_stage_of_the_summing(home: &impl Home) {
    let mut book = Book::new(home, 20_261_101).await;
    let store = home.store();
    book.add(160).await;
    book.check(store, "nothing is summed").await;
    let step = store.sum_usage_older_than(Duration::ZERO).await.unwrap();
    assert_eq!(step, SummingProgress::Step);
    assert!(book.count("usage_hours").await > 0);
    book.check(store, "a page is summed").await;
    book.go_on().await;
    book.check(store, "what runs ends on both sides of the page").await;
    assert!(sum_all(store).await > 0);
    let running = book.rows.iter().filter(|row| matches!(row.phase, "leased" | "recorded"));
    let (running, late) = (running.count(), book.count("late_ends").await);
    assert!(usize::try_from(late).unwrap() >= running, "{late} noted, {running} run");
    book.check(store, "all is summed").await;
    for round in 0..4 {
        book.go_on().await;
        book.check(store, "what was noted ends, and refunds come late").await;
        book.add(20).await;
        book.check(store, "more is not summed").await;
        sum_all(store).await;
        book.check(store, &format!("all is summed again, round {round}")).await;
    }
    let finished = book.rows.iter().filter(|row| row.is_finished()).count();
    let summed = "SELECT CAST(sum(completed + refused + abandoned) AS bigint) FROM usage_hours";
    assert_eq!(book.raw.number(summed).await, i64::try_from(finished).unwrap());
    let later = book.rows.iter().filter(|row| row.generation > 2).count();
    assert!(later > 3, "third generations among them: {later}");
}

async fn nodes_that_sum_at_once_sum_everything_once(home: &impl Home) {
    let mut book = Book::new(home, 7).await;
    let other = home.again().await;
    for _round in 0..3 {
        book.add(150).await;
        book.go_on().await;
        let (mine, theirs) = tokio::join!(sum_all(home.store()), sum_all(&other));
        assert!(mine + theirs > 0);
        book.check(home.store(), "summed by two").await;
    }
    other.close().await.unwrap();
}

async fn what_is_young_is_not_summed(home: &impl Home) {
    let mut book = Book::new(home, 9).await;
    let live = Tenant::new(home, 1_000).await;
    book.add(10).await;
    // By the database's clock, unlike those before it.
    live.admit(&live.claim().build()).await;
    while home.store().sum_usage().await.unwrap() == SummingProgress::Step {}
    let last = book.rows.last().unwrap().seq;
    let summed = book.raw.number("SELECT operations_to FROM usage_summed").await;
    assert_eq!(summed, last + 1);
}

async fn sums_that_are_not_those_of_the_rows_are_found(home: &impl Home) {
    let mut book = Book::new(home, 11).await;
    book.add(60).await;
    book.go_on().await;
    sum_all(home.store()).await;
    let one = "(wallet_id, hour, api_key_id, model, route) IN (SELECT wallet_id, hour, api_key_id, \
               model, route FROM usage_hours WHERE completed > 0 \
               ORDER BY hour, wallet_id, api_key_id, model, route LIMIT 1)";
    for (broken, mended, told) in [
        ("charge = charge + 3", "charge = charge - 3", "charge +3"),
        ("margin = margin - 2", "margin = margin + 2", "margin -2"),
        ("route = 'x' || route", "route = substr(route, 2)", "under other keys"),
    ] {
        book.raw.run(&format!("UPDATE usage_hours SET {broken} WHERE {one}")).await;
        let found = home.store().verify().await.unwrap();
        let usage = found.mismatches.iter().filter(|it| it.sentence.starts_with("its usage"));
        let usage: Vec<_> = usage.map(|it| it.sentence.clone()).collect();
        assert!(matches!(usage.as_slice(), [one] if one.contains(told)), "{broken}: {usage:?}");
        let by = if told == "under other keys" { "route LIKE 'x%'" } else { one };
        book.raw.run(&format!("UPDATE usage_hours SET {mended} WHERE {by}")).await;
    }
    book.check(home.store(), "mended").await;
    book.raw.run(&format!("DELETE FROM usage_hours WHERE {one}")).await;
    let found = format!("{:?}", home.store().verify().await.unwrap());
    assert!(found.contains("completed -"), "{found}");
}

crate::scratch::on_every_store! {
    a_report_is_the_sum_of_the_rows_at_every_stage_of_the_summing,
    nodes_that_sum_at_once_sum_everything_once,
    what_is_young_is_not_summed,
    sums_that_are_not_those_of_the_rows_are_found,
}

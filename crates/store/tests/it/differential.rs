//! The same histories on every store: the journal in memory is the reference, and each other one must
//! give the same verdict at every step and have the same rows at the end.
//!
//! Clocks differ, so a moment counts by which event it is the moment of. What a race may end as is not
//! here: every store does one thing at a time, and the laws let them race.

mod history;
mod player;
mod rows;

use holdfast_domain::Timestamp;
use holdfast_domain::limits::Counter;
use holdfast_testkit::{MemoryJournal, Stores, sample};

use self::history::History;
use self::player::Player;
use crate::scratch::Scratch;
use crate::server::Server;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=16;
const STEPS: usize = 200;

/// What some verdict of the histories says: one that never gets there compares nothing.
const SOMEWHERE: [&str; 38] = [
    "effect: Admit",
    "effect: Reopen",
    "effect: Complete",
    "effect: Record",
    "effect: Settle",
    "effect: AskCancel",
    "effect: Open",
    "effect: Refuse",
    "effect: Abandon",
    "generation: 3",
    "kind: Deposit",
    "kind: Refund",
    "kind: Adjustment",
    "Conflict",
    "InsufficientFunds",
    "counter: Requests, amount",
    "counter: Tokens, amount",
    "counter: Concurrency, amount",
    "counter: SpendTotal, amount",
    "counter: SpendDay, amount",
    "counter: SpendMonth, amount",
    "Collision",
    "OtherRequest",
    "Ended",
    "Leased",
    "Recorded",
    "NotRunning",
    "NotOwner",
    "ClaimUsed",
    "LeaseLost",
    "OwnerAlive",
    "CancelAsked",
    "Missing",
    "2 purged",
    "lost: Some",
    "NameTaken",
    "NoWallet",
    "Err(Conflict(",
];

#[tokio::test]
async fn a_file_tells_the_same_history() {
    compare("SQLite", Scratch::open).await;
}

#[tokio::test]
async fn postgres_tells_the_same_history() {
    compare("PostgreSQL", Server::open).await;
}

/// Tells the histories on the reference and on the stores that a function makes.
async fn compare<S: Stores>(name: &str, open: impl AsyncFn() -> S) {
    let mut verdicts = Vec::new();
    for seed in SEEDS {
        // Counters have windows of minutes: a history that a minute's turn would spoil is told again.
        loop {
            let stores = open().await;
            let minute = minute(&stores).await;
            let memory = MemoryJournal::new();
            let others: [(&str, &dyn Stores); 1] = [(name, &stores)];
            let told = tell(seed, &memory, &others).await;
            if self::minute(&stores).await == minute {
                assert!(told.is_ok(), "seed {seed}, {}", told.unwrap_err());
                verdicts.extend(told.unwrap());
                break;
            }
        }
    }
    let is_missing = |place: &&&str| !verdicts.iter().any(|verdict| verdict.contains(**place));
    assert_eq!(SOMEWHERE.iter().filter(is_missing).collect::<Vec<_>>(), Vec::<&&str>::new());
}

/// Tells one history: the verdicts, or where a store first differs from the reference.
async fn tell(
    seed: u64,
    memory: &MemoryJournal,
    others: &[(&str, &dyn Stores)],
) -> Result<Vec<String>, String> {
    let mut verdicts = Vec::new();
    let mut history = History::new(seed);
    let mut reference = Player::new(memory);
    let mut players: Vec<(&str, Player<'_>)> =
        others.iter().map(|(name, stores)| (*name, Player::new(*stores))).collect();
    let beginning = History::beginning();
    for n in 0..beginning.len() + STEPS {
        let step = match beginning.get(n) {
            Some(step) => step.clone(),
            None => history.next(memory),
        };
        let expected = reference.play(&step).await;
        for (name, player) in &mut players {
            let found = player.play(&step).await;
            if found != expected {
                let difference = format!("{found}\ninstead of\n{expected}");
                return Err(format!("{name}, step {n}, {step:?}:\n{difference}"));
            }
        }
        verdicts.push(expected);
    }
    let expected = rows::read(&reference, &history).await;
    for (name, player) in &players {
        let found = rows::read(player, &history).await;
        for ((what, expected), (_, found)) in expected.iter().zip(&found) {
            if found != expected {
                return Err(format!("{name}, {what}:\n{}", difference(found, expected)));
            }
        }
    }
    for api_key in history::api_keys() {
        for counter in Counter::ALL {
            let used = memory.counter(api_key, counter, memory.now());
            for (name, player) in [("memory", &reference)]
                .into_iter()
                .chain(players.iter().map(|(name, player)| (*name, player)))
            {
                if !player.has_used(api_key, counter, used).await {
                    return Err(format!("{name}, {counter:?} of {api_key}: not {used}"));
                }
            }
        }
    }
    Ok(verdicts)
}

/// The lines around the first one that differs.
fn difference(found: &str, expected: &str) -> String {
    const AROUND: usize = 12;
    let same = found.lines().zip(expected.lines()).take_while(|(found, wanted)| found == wanted);
    let from = same.count().saturating_sub(AROUND);
    let part = |text: &str| text.lines().skip(from).take(2 * AROUND).collect::<Vec<_>>().join("\n");
    format!("{}\ninstead of\n{}", part(found), part(expected))
}

async fn minute(stores: &impl Stores) -> Timestamp {
    let now = stores.journal().load(sample::fresh()).await.unwrap().now;
    Counter::Requests.window(now)
}

//! Sells one piece of work, replays it and refuses a conflict, on a journal in memory.
//! A service brings its own journal and its own work; nothing else here would change.

use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_domain::conduct::{ClaimError, ClaimOutcome, Conduct, Ending};
use holdfast_testkit::{MemoryJournal, NoPause, sample};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), ClaimError> {
    let journal = MemoryJournal::with_funds(1_000);
    let conduct = Conduct { journal: &journal, pause: &NoPause, orphan_grace: None };
    let runs = AtomicU32::new(0);
    // The work: called at most once for a key, after its hold was committed; metered at 30 micros.
    let work = async |_operation| {
        runs.fetch_add(1, Ordering::Relaxed);
        let (metered, result) = (sample::metered(20, 10), sample::result("done"));
        (Ending::Finished { metered, result }, Vec::new())
    };
    // Three requests under one key: each is a claim with an id of its own.
    let [first, again, another] = ["dig a hole", "dig a hole", "dig two holes"]
        .map(|request| sample::claim().claim_id(sample::fresh()).request(request).build());

    let sold = conduct.perform(&sample::order(&first), work).await?;
    let replay = conduct.perform(&sample::order(&again), work).await?;
    let conflict = conduct.perform(&sample::order(&another), work).await?;

    let answers = [sold, replay].map(|claimed| match claimed {
        ClaimOutcome::Ended(found) => found.snapshot.result,
        ClaimOutcome::Mine(..) | ClaimOutcome::InProgress(_) | ClaimOutcome::Recorded(_) => None,
        ClaimOutcome::TooSoon(_) | ClaimOutcome::OtherRequest => None,
    });
    assert_eq!(answers, [Some(sample::result("done")), Some(sample::result("done"))]);
    assert!(matches!(conflict, ClaimOutcome::OtherRequest));
    assert_eq!(runs.into_inner(), 1);
    assert_eq!(journal.wallet(sample::WALLET).map(|wallet| wallet.available.get()), Some(970));
    Ok(())
}

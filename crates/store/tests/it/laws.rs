//! What every store must do, on this one.

use crate::scratch::Scratch;

async fn fresh() -> Scratch {
    Scratch::open().await
}

mod one_thread {
    holdfast_testkit::journal_laws!(super::fresh);
    holdfast_testkit::ports_laws!(super::fresh);
}

mod two_threads {
    holdfast_testkit::journal_laws!(super::fresh, flavor = "multi_thread", worker_threads = 2);
    holdfast_testkit::ports_laws!(super::fresh, flavor = "multi_thread", worker_threads = 2);
}

//! What every store must do, on both.

use crate::scratch::Scratch;
use crate::server::Server;

async fn fresh() -> Scratch {
    Scratch::open().await
}

async fn fresh_on_a_server() -> Server {
    Server::open().await
}

async fn fresh_and_serializable() -> Server {
    Server::serializable().await
}

mod one_thread {
    holdfast_testkit::journal_laws!(super::fresh);
    holdfast_testkit::ports_laws!(super::fresh);
}

mod two_threads {
    holdfast_testkit::journal_laws!(super::fresh, flavor = "multi_thread", worker_threads = 2);
    holdfast_testkit::ports_laws!(super::fresh, flavor = "multi_thread", worker_threads = 2);
}

mod postgres_one_thread {
    holdfast_testkit::journal_laws!(super::fresh_on_a_server);
    holdfast_testkit::ports_laws!(super::fresh_on_a_server);
}

mod postgres_two_threads {
    holdfast_testkit::journal_laws!(
        super::fresh_on_a_server,
        flavor = "multi_thread",
        worker_threads = 2
    );
    holdfast_testkit::ports_laws!(
        super::fresh_on_a_server,
        flavor = "multi_thread",
        worker_threads = 2
    );
}

mod postgres_serializable {
    holdfast_testkit::journal_laws!(
        super::fresh_and_serializable,
        flavor = "multi_thread",
        worker_threads = 2
    );
    holdfast_testkit::ports_laws!(
        super::fresh_and_serializable,
        flavor = "multi_thread",
        worker_threads = 2
    );
}

//! The trail beside serving: refused attempts are written in batches, and its head is logged, so that
//! a log which is kept elsewhere shows a trail that was written anew.

use std::time::Duration;

use holdfast_accounts::{Accounts, FailedSignIns};
use holdfast_domain::ErrorChain;
use holdfast_domain::admin::Administration as _;
use holdfast_store::Store;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// Interval between two writes of refused attempts, however many there are.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// Interval between two lines of the log that name the head.
const LOG_EVERY: Duration = Duration::from_secs(3_600);

/// Writes and logs until the process ends, even if the store does not answer.
pub(super) async fn run(store: Store, accounts: Accounts, shutdown: CancellationToken) {
    run_every([WRITE_EVERY, LOG_EVERY], store, accounts, shutdown).await;
}

/// The same in these intervals: between two writes, and between two lines of the log.
async fn run_every(
    [write_every, log_every]: [Duration; 2],
    store: Store,
    accounts: Accounts,
    shutdown: CancellationToken,
) {
    let mut writes = interval_at(Instant::now() + write_every, write_every);
    let mut heads = interval_at(Instant::now() + log_every, log_every);
    for ticks in [&mut writes, &mut heads] {
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    loop {
        tokio::select! {
            _tick = writes.tick() => write(&accounts, false).await,
            _tick = heads.tick() => log_head(&store).await,
            () = shutdown.cancelled() => break,
        }
    }
    // Those since the last write.
    write(&accounts, true).await;
}

async fn write(accounts: &Accounts, is_last: bool) {
    write_notes(accounts, is_last).await;
    match accounts.write_refused().await {
        Ok(refused) => {
            for it in refused {
                let (actor, use_case) = (it.actor.to_string(), it.use_case.label());
                let attempts = it.attempts;
                tracing::warn!(actor, use_case, attempts, "administration was refused");
            }
        }
        Err(error) => {
            tracing::warn!(
                error = %ErrorChain(&error),
                "refused attempts were not written: they wait for the next write"
            );
        }
    }
}

/// Writes notes of reads and failed sign-ins, and logs the latter: a pair of person and address group at most twice an
/// hour.
async fn write_notes(accounts: &Accounts, is_last: bool) {
    match accounts.write_notes(is_last).await {
        Ok(failed) => {
            for FailedSignIns { person, group, attempts } in failed {
                let person = person.map_or_else(|| "unknown".to_owned(), |it| it.to_string());
                let address = group.map_or_else(|| "several".to_owned(), |it| it.to_string());
                tracing::warn!(person, client.address = address, attempts, "sign-ins failed");
            }
        }
        Err(error) => {
            tracing::warn!(
                error = %ErrorChain(&error),
                "notes of reads and failed sign-ins were not written: they wait for the next write"
            );
        }
    }
}

async fn log_head(store: &Store) {
    match store.trail_head().await {
        Ok(head) => tracing::info!(%head, "the latest audit checksum"),
        Err(error) => {
            tracing::warn!(error = %ErrorChain(&error), "the latest audit checksum was not read");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use holdfast_accounts::{NewWallet, Principal, Request};
    use holdfast_domain::admin::WalletPatch;
    use holdfast_domain::admin::audit::TrailHead;
    use holdfast_domain::secret::ServerSecret;
    use holdfast_domain::{CommandKey, Currency};
    use holdfast_engine::Secrets;
    use holdfast_store::{DatabaseUrl, Options, migrate};
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;
    use holdfast_bootstrap::accounts;

    /// A log that is read a line at a time.
    #[derive(Debug, Clone)]
    struct Lines(UnboundedSender<String>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Nobody reads to the end.
            drop(self.0.send(String::from_utf8_lossy(bytes).into_owned()));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    /// The lines that name a head, of two intervals.
    async fn logged(store: &Store, accounts: &Accounts) -> Vec<String> {
        let (sender, mut lines) = unbounded_channel();
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(Lines(sender)).finish();
        let _logging = tracing::subscriber::set_default(log);
        let shutdown = CancellationToken::new();
        let every = [WRITE_EVERY, Duration::from_millis(5)];
        let running = run_every(every, store.clone(), accounts.clone(), shutdown.clone());
        let mut found = Vec::new();
        let two = async {
            while found.len() < 2 {
                let line = lines.recv().await.unwrap();
                found.extend(Some(line).filter(|line| line.contains("the latest audit checksum")));
            }
            shutdown.cancel();
        };
        tokio::join!(running, two);
        found
    }

    #[tokio::test]
    async fn the_head_of_the_trail_is_logged_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/holdfast.db", folder.path().display());
        let url = DatabaseUrl::parse(&url).unwrap();
        migrate::up(&url).await.unwrap();
        let store = Store::open(Options::new(url)).await.unwrap();
        let secrets = Secrets::new(ServerSecret::new(&[7; 32]).unwrap(), Vec::new());
        let accounts = accounts::over(&store, &secrets);
        let before = logged(&store, &accounts).await;
        assert!(
            before.iter().all(|line| line.contains(&TrailHead::EMPTY.to_string())),
            "{before:?}"
        );
        let new = NewWallet {
            name: "acme".parse().unwrap(),
            currency: Currency::USD,
            settings: WalletPatch::default(),
        };
        let request = Request::new(CommandKey::from_bytes([1; 16]), &[b"wallet"], None);
        accounts.create_wallet(&Principal::local(), &request, &new).await.unwrap();
        let head = store.trail_head().await.unwrap();
        assert_eq!(head.seq, 1);
        let after = logged(&store, &accounts).await;
        assert!(after.iter().all(|line| line.contains(&head.to_string())), "{after:?}");
        store.close().await.unwrap();
    }
}

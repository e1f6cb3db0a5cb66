//! A store that takes nothing for a while: locked by somebody else, or on a disk that is full. Callers
//! are told to come again with the same key, nothing is lost, and the process goes on by itself.

use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_tests::database::WriteLock;
use holdfast_tests::{
    Account, Answer, Config, Gate, Gateway, Ran, Reply, Request, Site, Upstream, request_key,
};

use crate::{CHARGE, FUNDS, acme, check_completion, check_wallet, until};

/// How long a caller waits for a store that does not commit; then it is told to come again.
const COMMIT_WAIT: Duration = Duration::from_secs(10);

struct World {
    upstream: Upstream,
    site: Site,
    account: Account,
}

fn world(reply: Reply) -> World {
    let upstream = Upstream::start(reply);
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    World { upstream, site, account }
}

#[track_caller]
fn check_unavailable(answer: &Answer) {
    let error = &answer.json()["error"];
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(error["code"], "storage_unavailable");
    assert_eq!(error["type"], "server_error");
    assert!(error["charged_micros"].is_null(), "nobody knows yet: {error}");
    assert_eq!(answer.header("x-should-retry"), Some("true"));
    assert!(answer.header("retry-after").is_some());
}

impl World {
    fn request(&self) -> Request {
        Request::completion(&self.account.key, &request_key(), acme("Hello"))
    }

    /// All of these end completed, each after one run and one charge.
    #[track_caller]
    fn check_completed(&self, gateway: &Gateway, requests: &[Request]) {
        for request in requests {
            let answer = gateway.send(request);
            check_completion(&answer);
            assert_eq!(gateway.send(request).body, answer.body);
        }
        let n = i64::try_from(requests.len()).unwrap();
        assert_eq!(self.upstream.runs(), requests.len(), "one run each");
        check_wallet(gateway, &self.account, FUNDS - n * CHARGE);
        assert_eq!(self.site.verify()["operations"], n);
    }
}

#[test]
fn lock_for_a_moment_makes_callers_wait_and_no_more() {
    let world = world(Reply::saying("Good day"));
    let gateway = world.site.serve();
    let requests: Vec<_> = (0..20).map(|_| world.request()).collect();
    let lock = WriteLock::take(&world.site.database());
    let waiting: Vec<_> = requests.iter().map(|it| it.begin(gateway.address())).collect();
    // The stall itself, shorter than a caller's patience.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(world.upstream.runs(), 0, "nothing runs before its claim is durable");
    drop(lock);
    for waiting in waiting {
        check_completion(&waiting.answer());
    }
    world.check_completed(&gateway, &requests);
}

#[test]
fn lock_before_the_claim_binds_nothing_until_it_is_gone() {
    let world = world(Reply::saying("Good day"));
    let gateway = world.site.serve();
    let requests: Vec<_> = (0..20).map(|_| world.request()).collect();
    let lock = WriteLock::take(&world.site.database());
    let waiting: Vec<_> = requests.iter().map(|it| it.begin(gateway.address())).collect();
    for waiting in waiting {
        check_unavailable(&waiting.answer());
    }
    assert_eq!(world.upstream.runs(), 0);
    // Whoever only reads is not disturbed.
    check_wallet(&gateway, &world.account, FUNDS);
    assert_eq!(world.site.verify()["operations"], 0);
    drop(lock);
    world.check_completed(&gateway, &requests);
}

#[test]
fn lock_before_the_settlement_loses_no_result() {
    let gate = Gate::new();
    let world = world(Reply::saying("Good day").after(&gate));
    let gateway = world.site.serve();
    let requests: Vec<_> = (0..8).map(|_| world.request()).collect();
    let waiting: Vec<_> = requests.iter().map(|it| it.begin(gateway.address())).collect();
    world.upstream.wait_for(requests.len());
    let lock = WriteLock::take(&world.site.database());
    let answered = Instant::now();
    gate.open();
    for waiting in waiting {
        check_unavailable(&waiting.answer());
    }
    assert!(answered.elapsed() >= COMMIT_WAIT, "they were told before it was time");
    drop(lock);
    until("the results are settled", || (world.site.balance(&world.account).1 == 0).then_some(()));
    for request in &requests {
        assert_eq!(gateway.send(request).header("idempotent-replayed"), Some("true"));
    }
    world.check_completed(&gateway, &requests);
}

/// A gateway whose files cannot grow while [`Self::is_full`] says so.
struct Disk<'a>(&'a Gateway);

impl Disk<'_> {
    /// Starts a gateway that is not ended by the signal which comes with the error.
    fn serve(site: &Site) -> Gateway {
        site.start(in_shell(site, "trap '' XFSZ; exec \"$0\" serve"))
    }

    fn is_full(&self, is_full: bool) {
        let limit = if is_full { "0" } else { "unlimited" };
        let process = self.0.process().to_string();
        let mut prlimit = Command::new("prlimit");
        prlimit.args(["--pid", &process, &format!("--fsize={limit}:unlimited")]);
        drop(Ran::of(&mut prlimit).ok());
    }
}

/// The gateway's binary as `$0` of a shell's line, with the same environment.
fn in_shell(site: &Site, line: &str) -> Command {
    let gateway = site.command();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line).arg(gateway.get_program());
    shell.current_dir(site.folder()).env_clear();
    shell.envs(gateway.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

#[test]
fn disk_full_before_the_claim_runs_nothing_until_there_is_room() {
    let world = world(Reply::saying("Good day"));
    let gateway = Disk::serve(&world.site);
    let disk = Disk(&gateway);
    let before = world.request();
    check_completion(&gateway.send(&before));
    disk.is_full(true);
    let requests: Vec<_> = (0..4).map(|_| world.request()).collect();
    let waiting: Vec<_> = requests.iter().map(|it| it.begin(gateway.address())).collect();
    for waiting in waiting {
        check_unavailable(&waiting.answer());
    }
    assert_eq!(world.upstream.runs(), 1, "nothing runs without a durable claim");
    check_completion(&gateway.send(&before));
    disk.is_full(false);
    world.check_completed(&gateway, &[&[before], &requests[..]].concat());
    gateway.stop();
}

#[test]
fn disk_full_until_nobody_waits_any_more_runs_nothing_that_nobody_waits_for() {
    let world = world(Reply::saying("Good day"));
    let gateway = Disk::serve(&world.site);
    let disk = Disk(&gateway);
    disk.is_full(true);
    let hang_ups: Vec<_> = (0..40).map(|_| world.request()).collect();
    for request in &hang_ups {
        request.begin(gateway.address()).hang_up();
    }
    let [told, patient] = [world.request(), world.request()];
    let (waiting, early) = (told.begin(gateway.address()), patient.begin(gateway.address()));
    // Half of a caller's patience later: one who comes now waits when the others have been told.
    std::thread::sleep(COMMIT_WAIT / 2);
    let late = patient.begin(gateway.address());
    check_unavailable(&waiting.answer());
    check_unavailable(&early.answer());
    disk.is_full(false);
    check_completion(&late.answer());
    let held = || (world.site.balance(&world.account).1 == 0).then_some(());
    until("what nobody waits for is given back", held);
    assert_eq!(world.upstream.runs(), 1, "only what somebody waits for runs");
    check_wallet(&gateway, &world.account, FUNDS - CHARGE);
    world.check_completed(&gateway, &[&hang_ups[..], &[told, patient]].concat());
    gateway.stop();
}

#[test]
fn disk_full_before_the_settlement_loses_no_result() {
    let gate = Gate::new();
    let world = world(Reply::saying("Good day").after(&gate));
    let gateway = Disk::serve(&world.site);
    let disk = Disk(&gateway);
    let requests: Vec<_> = (0..4).map(|_| world.request()).collect();
    let waiting: Vec<_> = requests.iter().map(|it| it.begin(gateway.address())).collect();
    world.upstream.wait_for(requests.len());
    disk.is_full(true);
    gate.open();
    for waiting in waiting {
        check_unavailable(&waiting.answer());
    }
    disk.is_full(false);
    world.check_completed(&gateway, &requests);
    gateway.stop();
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let world = world(Reply::saying("Good day"));
    let gateway = world.site.start(in_shell(&world.site, "exec \"$0\" serve 2>/dev/full"));
    let requests: Vec<_> = (0..4).map(|_| world.request()).collect();
    world.check_completed(&gateway, &requests);
    gateway.stop();
}

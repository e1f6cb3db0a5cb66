//! `holdfast sidecar` between a client without request keys and the real gateway: what is one call,
//! what is passed on, and what is told where nothing helps.

use std::path::Path;
use std::time::Duration;

use holdfast_tests::{Answer, Gate, Gateway, Reply, Request, Site, Streaming, Upstream};
use holdfast_wire::error::Code;
use serde_json::json;

use crate::bodies::acme;
use crate::check::until;
use crate::clients::{World, world};

pub(crate) const SAID: &str = "Good day";
pub(crate) const STREAMED: [&str; 2] = ["Good ", "day"];

/// A gateway with a sidecar before it.
pub(crate) struct Pair {
    pub(crate) sidecar: Gateway,
    pub(crate) world: World,
}

pub(crate) fn pair(options: &[&str]) -> Pair {
    let world = world();
    world.upstream.otherwise(as_asked());
    let sidecar = world.site.sidecar(world.gateway.address(), options);
    Pair { sidecar, world }
}

/// Answers as it was asked, whole or as a stream.
pub(crate) fn as_asked() -> Reply {
    Reply::as_wanted(Streaming::saying(&STREAMED).reply(), Reply::saying(SAID))
}

impl Pair {
    /// A completion without a key, as any OpenAI client sends it.
    pub(crate) fn request(&self, text: &str) -> Request {
        Request::completion(&self.world.account.key, "", acme(text)).without("Idempotency-Key")
    }

    fn streamed(&self, text: &str) -> Request {
        let body = acme(text).replacen('{', "{\"stream\":true,", 1);
        Request::completion(&self.world.account.key, "", body).without("Idempotency-Key")
    }

    pub(crate) fn ask(&self, text: &str) -> Answer {
        self.sidecar.send(&self.request(text))
    }

    /// One more than a client: the same with the mark of an SDK's retry.
    pub(crate) fn ask_again(&self, text: &str) -> Answer {
        self.sidecar.send(&self.request(text).header("x-stainless-retry-count", "1"))
    }
}

#[track_caller]
pub(crate) fn key(answer: &Answer) -> String {
    answer.header("idempotency-key").unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

#[track_caller]
fn check_said(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["choices"][0]["message"]["content"], SAID);
}

#[test]
fn a_call_without_a_key_gets_one_and_the_next_is_another() {
    let pair = pair(&[]);
    let [one, two] = [pair.ask("Say hello"), pair.ask("Say hello")];
    check_said(&one);
    check_said(&two);
    assert_ne!(key(&one), key(&two));
    pair.world.check_charges(2);
}

#[test]
fn a_stream_comes_as_the_gateway_tells_it() {
    let pair = pair(&[]);
    let told = pair.streamed("Say hello").begin(pair.sidecar.address()).events().rest();
    let text: String = told.events.join("");
    assert!(text.contains("Good ") && text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(told.head.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let again = told.head.header("idempotency-key").unwrap().to_owned();
    let direct = Request::completion(&pair.world.account.key, &again, acme("Say hello"));
    check_said(&pair.world.gateway.send(&direct));
    pair.world.check_charges(1);
}

#[test]
fn a_marked_retry_replays_what_was_delivered() {
    let pair = pair(&[]);
    let first = pair.ask("Say hello");
    let again = pair.ask_again("Say hello");
    assert_eq!((key(&again), &again.body), (key(&first), &first.body));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    pair.world.check_charges(1);
}

#[test]
fn who_comes_after_a_hang_up_gets_the_answer_of_the_one_run() {
    let pair = pair(&[]);
    let gate = Gate::new();
    pair.world.upstream.next(Reply::saying(SAID).after(&gate));
    let first = pair.request("Say hello").begin(pair.sidecar.address());
    pair.world.upstream.wait_for(1);
    first.hang_up();
    let second = pair.request("Say hello").begin(pair.sidecar.address());
    gate.open();
    check_said(&second.answer());
    pair.world.check_charges(1);
}

#[test]
fn who_comes_after_the_window_has_a_call_of_its_own() {
    let pair = pair(&["--window", "1s"]);
    let gate = Gate::new();
    pair.world.upstream.next(Reply::saying(SAID).after(&gate));
    let first = pair.request("Say hello").begin(pair.sidecar.address());
    pair.world.upstream.wait_for(1);
    first.hang_up();
    // Nothing tells of a window but time.
    std::thread::sleep(Duration::from_secs(4));
    check_said(&pair.ask("Say hello"));
    gate.open();
    pair.world.check_charges(2);
}

#[test]
fn identical_calls_at_once_are_two_unless_they_share() {
    for (options, runs) in [(&[][..], 2), (&["--identical", "attach"], 1)] {
        let pair = pair(options);
        let gate = Gate::new();
        pair.world.upstream.otherwise(as_asked().after(&gate));
        let first = pair.request("Say hello").begin(pair.sidecar.address());
        pair.world.upstream.wait_for(1);
        let second = pair.request("Say hello").begin(pair.sidecar.address());
        if runs == 1 {
            crate::admin::wait_for_waiters(&pair.world.gateway, 2);
        } else {
            pair.world.upstream.wait_for(2);
        }
        gate.open();
        check_said(&first.answer());
        check_said(&second.answer());
        pair.world.check_charges(runs);
    }
}

#[test]
fn a_final_error_is_told_again_and_a_refusal_is_not_kept() {
    let pair = pair(&[]);
    pair.world.upstream.next(Reply::json(400, &json!({"error": {"message": "no"}})));
    let refused = pair.ask("Say hello");
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_eq!(key(&pair.ask("Say hello")), key(&refused), "anybody's for a minute");
    let wrong = || {
        let request = Request::post("/v1/chat/completions", acme("Say hello"));
        let request = request.header("Content-Type", "application/json").bearer("hfk_wrong");
        pair.sidecar.send(&request)
    };
    let [one, two] = [wrong(), wrong()];
    assert_eq!((one.status, two.status), (401, 401));
    assert_eq!(pair.world.upstream.runs(), 1);
}

#[test]
fn what_is_no_completion_is_passed_on_and_an_own_key_wins() {
    let pair = pair(&[]);
    let account = &pair.world.account;
    let models = pair.sidecar.get(account, "/v1/models");
    assert_eq!(models.json(), pair.world.gateway.get(account, "/v1/models").json());
    assert_eq!(pair.sidecar.send(&Request::get("/healthz")).status, 200);
    assert_eq!(pair.sidecar.send(&Request::get("/nowhere")).status, 404);
    let own = holdfast_tests::request_key();
    let answer = pair.sidecar.complete(account, &own, &acme("Say hello"));
    assert_eq!(key(&answer), own);
    let operation = pair.sidecar.get(account, &format!("/v1/operations/{own}"));
    assert_eq!(operation.json()["situation"], "completed");
    pair.world.check_charges(1);
}

#[test]
fn the_gateways_hint_is_followed_until_it_answers() {
    let pair = pair(&[]);
    // Proven not run: the gateway says 503 and asks for the same key again.
    pair.world.upstream.next(Reply::json(429, &json!({"error": {"message": "slow down"}})));
    check_said(&pair.ask("Say hello"));
    assert_eq!(pair.world.upstream.runs(), 2);
    assert_eq!(pair.world.site.verify()["operations"], 1);
}

#[test]
fn a_gateway_out_of_reach_is_one_clear_error() {
    let world = world();
    let nowhere = Upstream::absent();
    let sidecar = world.site.sidecar(nowhere, &["--patience", "1s"]);
    let pair = Pair { sidecar, world };
    let told = pair.ask("Say hello");
    let error = &told.json()["error"];
    assert_eq!((told.status, &error["code"]), (503, &json!(Code::GatewayUnreachable.label())));
    assert_eq!(told.header("x-should-retry"), Some("true"));
    assert_eq!(error["charged_micros"], json!(null), "nobody knows");
    assert_eq!(pair.sidecar.send(&Request::get("/v1/models")).status, 503);
}

#[test]
fn a_time_out_that_is_announced_ends_the_asking_before_it() {
    let world = world();
    let sidecar = world.site.sidecar(Upstream::absent(), &[]);
    let pair = Pair { sidecar, world };
    // Two minutes of patience otherwise: longer than a test waits.
    let announced = pair.request("Say hello").header("x-stainless-read-timeout", "5");
    assert_eq!(pair.sidecar.send(&announced).status, 503);
}

#[test]
fn a_hang_up_cancels_where_that_is_asked_for() {
    let pair = pair(&["--on-hangup", "cancel"]);
    pair.world.upstream.next(Reply::Silence);
    let first = pair.request("Say hello").begin(pair.sidecar.address());
    pair.world.upstream.wait_for(1);
    first.hang_up();
    pair.world.upstream.wait_for_hang_ups(1);
    let told = pair.ask("Say hello");
    assert_eq!(told.json()["error"]["code"], "outcome_unknown", "{told:?}");
    pair.world.site.verify();
}

#[test]
fn a_sidecar_that_is_killed_asks_under_the_same_key_after_it() {
    for options in [&[][..], &["--sync"]] {
        let Pair { sidecar, world } = pair(options);
        let gate = Gate::new();
        world.upstream.next(Reply::saying(SAID).after(&gate));
        let request = Pair { sidecar, world };
        let first = request.request("Say hello").begin(request.sidecar.address());
        request.world.upstream.wait_for(1);
        let Pair { sidecar, world } = request;
        sidecar.kill();
        drop(first);
        gate.open();
        let sidecar = world.site.sidecar(world.gateway.address(), options);
        let pair = Pair { sidecar, world };
        check_said(&pair.ask("Say hello"));
        pair.world.check_charges(1);
    }
}

#[test]
fn a_sidecar_that_is_stopped_answers_what_it_has_begun() {
    let Pair { sidecar, world } = pair(&[]);
    let gate = Gate::new();
    world.upstream.next(Reply::saying(SAID).after(&gate));
    let pair = Pair { sidecar, world };
    let first = pair.request("Say hello").begin(pair.sidecar.address());
    pair.world.upstream.wait_for(1);
    pair.sidecar.terminate();
    until("it drains", || pair.sidecar.said().contains("draining").then_some(()));
    gate.open();
    check_said(&first.answer());
    assert_eq!(pair.sidecar.wait().code(), Some(0));
    // Its end was written: an identical call is another one.
    let sidecar = pair.world.site.sidecar(pair.world.gateway.address(), &[]);
    let pair = Pair { sidecar, world: pair.world };
    check_said(&pair.ask("Say hello"));
    pair.world.check_charges(2);
}

#[test]
fn the_journal_is_one_sidecars_and_has_nothing_of_what_was_said() {
    let pair = pair(&[]);
    let mark = "a-prompt-that-nobody-may-find";
    check_said(&pair.ask(mark));
    let upstream = format!("http://{}/v1", Upstream::absent());
    let second =
        pair.world.site.cli(&["sidecar", "--upstream", &upstream, "--listen", "127.0.0.1:0"]);
    assert!(second.failed(1).contains("one journal is for one sidecar at a time"));
    let folder = pair.world.site.folder().to_owned();
    let key = pair.world.account.key.clone();
    let (sidecar, log) = (pair.sidecar, pair.world.site.logs());
    sidecar.stop();
    let secret = key.rsplit('_').next().unwrap();
    for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap()) {
        let name = file.file_name().into_string().unwrap();
        if name.starts_with("holdfast-sidecar.db") {
            let text = String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned();
            for secret in [mark, secret, SAID] {
                assert!(!text.contains(secret), "{secret} is in {name}");
            }
        }
    }
    for secret in [mark, secret, SAID] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn bodies_beyond_what_it_keeps_wait_for_room() {
    let (site, upstream) = (Site::empty(), Upstream::start(Reply::saying(SAID)));
    let sidecar = site.sidecar_to(&upstream.base_url(), &[], ("LANG", Path::new("C")));
    let gate = Gate::new();
    upstream.next(Reply::saying(SAID).after(&gate));
    // Two of them are more than the 64 MiB for all.
    let body = |text: &str| acme(&text.repeat(40 << 20));
    let request = |text| Request::completion("key", "", body(text)).without("Idempotency-Key");
    let kept = request("a").begin(sidecar.address());
    upstream.wait_for(1);
    let refused = sidecar.send(&request("b"));
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!("overloaded")));
    assert_eq!(refused.header("x-should-retry"), Some("true"));
    assert_eq!(upstream.runs(), 1, "it was not handed on");
    gate.open();
    check_said(&kept.answer());
    check_said(&sidecar.send(&request("b")));
}

#[test]
fn wrong_arguments_are_told_before_anything_is_made() {
    let site = Site::empty();
    let nowhere = format!("http://{}/v1", Upstream::absent());
    let upstream = ["--upstream", nowhere.as_str()];
    for (arguments, told) in [
        (&["--upstream", "gateway"][..], "http://HOST"),
        (&[upstream[0], upstream[1], "--listen", "0.0.0.0:0"], "--listen-anyway"),
        (&[upstream[0], upstream[1], "--window", "soon"], "24h"),
        (&[upstream[0], upstream[1], "--journal", "none", "--sync"], "--sync requires a journal"),
        (&[upstream[0], upstream[1], "--config", "holdfast.toml"], "neither --config nor --server"),
        (&[], "--upstream"),
    ] {
        let failed = site.cli(&[&["sidecar"], arguments].concat()).failed(2);
        assert!(failed.contains(told), "{arguments:?}: {failed}");
    }
    let left: Vec<_> = std::fs::read_dir(site.folder()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn it_listens_for_others_where_that_is_insisted_on() {
    let world = world();
    let mut command = world.site.command();
    let upstream = world.gateway.base_url();
    command.args(["sidecar", "--upstream", &upstream, "--listen", "0.0.0.0:0", "--listen-anyway"]);
    command.args(["--journal", "none"]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("holdfast sidecar listens on http://0.0.0.0:"), "{line}");
    assert!(!world.site.path("holdfast-sidecar.db").exists());
}

//! The operator's listener: metrics behind a token, and nothing of it on the public one.

use holdfast_tests::config::ADMIN_TOKEN;
use holdfast_tests::{Answer, Config, Gate, Gateway, Reply, Request, Site, Upstream, request_key};

use crate::bodies::acme;
use crate::check::{check_completion, until};

pub(crate) fn metrics(gateway: &Gateway) -> String {
    let answer = Request::get("/metrics").bearer(ADMIN_TOKEN).send(gateway.admin_address());
    assert_eq!(answer.status, 200, "{answer:?}");
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
    answer.text().to_owned()
}

/// The value of the only series of this name whose labels contain this text.
#[track_caller]
pub(crate) fn value(metrics: &str, name: &str, label: &str) -> f64 {
    shown_value(metrics, name, label).unwrap_or_else(|| panic!("no {name} {label} in\n{metrics}"))
}

/// The same, or nothing while no such series is shown: one with a label that a first event brings.
#[track_caller]
pub(crate) fn shown_value(metrics: &str, name: &str, label: &str) -> Option<f64> {
    let is_it = |line: &&str| {
        let series = line.strip_prefix(name);
        series.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
    };
    let lines: Vec<_> = metrics.lines().filter(is_it).collect();
    assert!(lines.len() < 2, "{name} {label} is ambiguous in\n{metrics}");
    lines.first().map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
}

/// Waits until so many requests wait for the end of operations.
#[track_caller]
pub(crate) fn wait_for_waiters(gateway: &Gateway, waiters: usize) {
    until("so many requests wait", || {
        let waiting = value(&metrics(gateway), "holdfast_waiters", "");
        (waiting.to_string() == waiters.to_string()).then_some(())
    });
}

#[test]
fn metrics_need_the_operators_token() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let bare = Request::get("/metrics");
    let ask = |request: &Request| request.send(gateway.admin_address());
    let wrong = ADMIN_TOKEN.replace("admin", "nimda");
    for refused in [bare.clone(), bare.clone().bearer(&account.key), bare.clone().bearer(&wrong)] {
        let answer: Answer = ask(&refused);
        assert_eq!(answer.status, 401, "{answer:?}");
        assert_eq!(answer.json()["error"]["code"], "invalid_api_key");
        let said = answer.json()["error"]["message"].to_string();
        assert!(said.contains("`admin.token`"), "{said}");
    }
    assert_eq!(ask(&bare.clone().bearer(ADMIN_TOKEN)).status, 200);
    assert_eq!(ask(&bare.clone().bearer(ADMIN_TOKEN).method("POST")).status, 405);
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(ask(&Request::get(probe)).status, 200, "{probe} needs no token");
    }
    // All else is the console's, which knows neither this host nor the token.
    let elsewhere = Request::get("/v1/wallet").host("gateway").bearer(ADMIN_TOKEN);
    assert_eq!(ask(&elsewhere).status, 421);
    let public = gateway.send(&bare.bearer(ADMIN_TOKEN));
    assert!(public.status == 401 || public.status == 404, "{public:?}");
    assert!(!public.text().contains("holdfast_"), "{public:?}");
}

#[test]
fn without_an_admin_table_there_is_no_such_listener() {
    let text = Config::simulated().render();
    let (_admin, rest) = text.split_once("[admin]").unwrap();
    let (_table, rest) = rest.split_once('[').unwrap();
    let site = Site::configured(&Config::simulated());
    site.write("holdfast.toml", &format!("[{rest}"));
    drop(site.cli(&["migrate", "up"]).ok());
    let gateway = site.serve();
    let ready = gateway.send(&Request::get("/readyz"));
    assert_eq!(ready.status, 200);
    assert!(!gateway.printed().contains("admin"), "{}", gateway.printed());
}

/// What begins with its first event shows no growth, so that nobody would be told of that.
#[test]
fn what_may_be_alarmed_on_is_there_before_it_happens() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let gateway = Site::configured(&Config::upstream(&upstream));
    drop(gateway.cli(&["migrate", "up"]).ok());
    let gateway = gateway.serve();
    let told = metrics(&gateway);
    let check = |name: &str, label: &str| {
        assert_eq!(value(&told, name, label).to_string(), "0", "{name} {label}");
    };
    for outcome in ["completed", "recorded", "open", "refused", "abandoned"] {
        check("holdfast_operations_total", &format!("\"{outcome}\""));
    }
    for phase in ["completed", "open", "refused", "abandoned"] {
        check("holdfast_reconciled_total", &format!("\"{phase}\""));
    }
    for verdict in ["conflict", "insufficient_funds", "limit_reached", "collision", "overloaded"] {
        check("holdfast_commits_total", &format!("\"{verdict}\""));
    }
    for verdict in ["committed", "unavailable", "uncertain"] {
        check("holdfast_commits_total", &format!("\"{verdict}\""));
    }
    for kind in ["input", "output"] {
        check("holdfast_tokens_total", &format!("\"{kind}\""));
    }
    for outcome in ["applied", "unchanged", "refused"] {
        check("holdfast_config_reloads_total", &format!("\"{outcome}\""));
    }
    check("holdfast_shortfall_micros_total", "\"USD\"");
    check("holdfast_holds_outstanding_micros", "{currency=\"USD\"}");
    for reason in ["refused", "abandoned", "cancelled"] {
        check("holdfast_exposure_micros_total", &format!("\"{reason}\""));
    }
    check("holdfast_upstream_seconds_count", "\"not_run_account\"");
    for alone in [
        "holdfast_late_results_total",
        "holdfast_lost_commits_total",
        "holdfast_holds_outstanding",
        "holdfast_holds_oldest_seconds",
        "holdfast_verification_mismatches",
        "holdfast_waiters",
    ] {
        check(alone, "");
    }
}

#[test]
fn metrics_tell_of_operations_and_commits() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &acme("Say hello")), &key, false);
    upstream.next(Reply::Send(400, String::new()));
    assert_eq!(gateway.complete(&account, &request_key(), &acme("Say hello")).status, 422);
    upstream.next(Reply::saying("Good day").after(&gate));
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(3);

    let told = metrics(&gateway);
    let count = |name: &str, label: &str| value(&told, name, label);
    assert_eq!(count("holdfast_operations_total", "completed").to_string(), "1");
    assert_eq!(count("holdfast_operations_total", "refused").to_string(), "1");
    assert_eq!(count("holdfast_waiters", "").to_string(), "1");
    assert_eq!(count("holdfast_commits_total", "\"committed\"").to_string(), "5");
    assert!(count("holdfast_commit_batch_size_count", "") >= 1.0);
    let requests = "route=\"/v1/chat/completions\",status=\"200\"";
    assert_eq!(count("holdfast_http_requests_total", requests).to_string(), "1");

    gate.open();
    check_completion(&running.answer(), &key, false);
    let told = metrics(&gateway);
    assert_eq!(value(&told, "holdfast_waiters", "").to_string(), "0");
}

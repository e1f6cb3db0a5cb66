//! Errors and latencies of routes, as operators see them: by the command line, the API and in the database's bytes.
//! Nothing of a prompt and no credential is among them, whatever the provider echoes.

use holdfast_tests::config::UPSTREAM_KEY;
use holdfast_tests::{Config, Reply, Site, Upstream, request_key};
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::until;
use crate::webhooks_delivered::Owner;

const ROUTE: &str = "acme/upstream-model-mark";
const PROMPT: &str = "The treasure lies below the third oak, four feet deep.";

/// Row of the route, once it is as wanted.
#[track_caller]
fn wait_for(site: &Site, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until(what, || {
        let routes = site.json(&["route", "list"]);
        let route = routes.as_array().unwrap().iter().find(|route| route["name"] == ROUTE);
        route.filter(|route| is_so(route)).cloned()
    })
}

#[test]
fn failing_route_shows_its_error_until_it_answers() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let error = json!({"error": {"message": format!("No room for {PROMPT} today, {UPSTREAM_KEY}."),
        "type": "overload_error", "code": "engine_busy", "param": null}});
    upstream.next(Reply::json(503, &error));
    let failed = gateway.complete(&account, &request_key(), &acme(PROMPT));
    assert!(failed.status >= 500, "{failed:?}");
    let route = wait_for(&site, "the route fails", |route| route["failed"] == 1);
    assert!(route["failing_since"].is_string(), "{route}");
    let said = "HTTP 503, code engine_busy, type overload_error: No room for … today";
    let shown = route["last_error"].as_str().unwrap();
    assert!(shown.starts_with(said), "{shown}");
    assert!(!shown.contains("oak") && !shown.contains(UPSTREAM_KEY), "{shown}");
    let owner = Owner::new(&site);
    let history = owner.show(&gateway, &format!("/routes/history?route={ROUTE}"));
    assert_eq!(history["failures"][0]["error"], shown, "{history}");
    assert_eq!(history["failures"][0]["class"], "unknown_status", "{history}");
    assert_eq!(history["hours"][0]["failed"], 1, "{history}");
    let breaker = &history["route"]["breakers"][0];
    assert_eq!(breaker["state"], "healthy", "{history}");
    let read = site.cli(&["route", "show", ROUTE]).ok();
    assert!(read.contains("engine_busy") && !read.contains("oak"), "{read}");

    let answered = gateway.complete(&account, &request_key(), &acme(PROMPT));
    assert_eq!(answered.status, 200, "{answered:?}");
    let route = wait_for(&site, "the route answers", |route| route["attempts"] == 2);
    assert_eq!(route["failing_since"], Value::Null, "{route}");
    assert!(route["p50_ms"].is_u64() && route["p95_ms"].is_u64(), "{route}");
    assert_eq!(route["failed_per_mille"], 500, "{route}");
    gateway.stop();
    let breakers = site.json(&["route", "list"])[0]["breakers"].clone();
    assert_eq!(breakers, json!([]), "they go with the lease");
}

#[test]
fn no_echo_of_prompt_or_credential_reaches_the_database_the_log_or_the_list() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream).set("log", "level", "\"trace\"");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let statuses = [400, 401, 402, 403, 404, 409, 413, 422, 429, 500, 502, 503, 529];
    for (cut, status) in statuses.into_iter().enumerate() {
        let part: String = PROMPT.chars().skip(cut).collect();
        let error = json!({"error": {"message": format!("{part} {UPSTREAM_KEY} {PROMPT}"),
            "type": UPSTREAM_KEY, "code": part, "param": PROMPT.to_lowercase()}});
        upstream.next(Reply::json(status, &error));
        assert_ne!(gateway.complete(&account, &request_key(), &acme(PROMPT)).status, 200);
        upstream.otherwise(Reply::saying("Good day"));
    }
    wait_for(&site, "failures are written", |route| route["failed"].as_u64() >= Some(1));
    let seen = site.json(&["route", "list"]).to_string()
        + &site.json(&["route", "show", ROUTE]).to_string();
    gateway.stop();
    let data = std::fs::read_dir(site.path("holdfast-data")).unwrap();
    let files = data.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    let mut places: Vec<Vec<u8>> = files.collect();
    places.push(site.logs().into_bytes());
    places.push(seen.into_bytes());
    for run in PROMPT.as_bytes().windows(12).chain([UPSTREAM_KEY.as_bytes()]) {
        for place in &places {
            let is_there = place.windows(run.len()).any(|window| window == run);
            assert!(!is_there, "{}", String::from_utf8_lossy(run));
        }
    }
}

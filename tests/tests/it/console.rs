//! The console of the embedded default in a browser's words: from the printed link to a signed-in page.

use holdfast_tests::{Answer, Gateway, Request, Site, database};

use crate::embedded;

const EMAIL: &str = "ada@example.com";
const PASSWORD: &str = "correct horse battery";

fn start() -> (Site, Gateway) {
    let site = embedded::empty().with_env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
    let gateway = embedded::start(&site);
    (site, gateway)
}

/// Sends a request as a page of the console would.
fn send(gateway: &Gateway, request: &Request) -> Answer {
    let admin = gateway.admin_address();
    request.clone().host(&admin.to_string()).send(admin)
}

fn post(gateway: &Gateway, path: &str, form: &str, cookie: &str) -> Answer {
    let request = Request::post(path, form)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Sec-Fetch-Site", "same-origin")
        .header("Cookie", cookie);
    send(gateway, &request)
}

fn get(gateway: &Gateway, path: &str, cookie: &str) -> Answer {
    send(gateway, &Request::get(path).header("Cookie", cookie))
}

/// The session that an answer sets.
fn session(answer: &Answer) -> String {
    let cookies = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
    let mut lines = cookies.map(|(_, line)| line.as_str());
    let line = lines.find(|line| line.starts_with("holdfast=")).unwrap();
    assert!(line.contains("HttpOnly"), "{line}");
    line.split(';').next().unwrap().to_owned()
}

#[test]
fn the_printed_link_makes_the_first_owner_who_signs_in_and_out() {
    let (_site, gateway) = start();
    let link = gateway.printed_after("first owner, once and within an hour: ");
    let base = gateway.printed_after("console: ");
    assert_eq!(base, format!("http://{}/", gateway.admin_address()));
    let path = format!("/{}", link.strip_prefix(&base).unwrap());
    let token = path.strip_prefix("/link/").unwrap();

    assert_eq!(get(&gateway, &path, "").status, 200, "who only looks has not used it");
    let form = "email=ada%40example.com&password=correct+horse+battery&again=correct+horse+battery";
    assert_eq!(post(&gateway, &path, form, "").status, 303);
    assert_eq!(post(&gateway, &path, form, "").status, 404, "it works once");

    assert_eq!(get(&gateway, "/wallets", "").status, 303);
    let form = "email=ada%40example.com&password=correct+horse+battery";
    let signed_in = post(&gateway, "/sign-in?next=%2Fwallets", form, "");
    assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/wallets")));
    let cookie = session(&signed_in);
    let page = get(&gateway, "/wallets", &cookie);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("default") && page.text().contains("10.00 USD"));

    assert_eq!(get(&gateway, "/metrics", &cookie).status, 401, "the session opens nothing else");
    assert_eq!(get(&gateway, "/admin/v1/wallets", &cookie).status, 401);
    assert_eq!(post(&gateway, "/sign-out", "", &cookie).status, 303);
    assert_eq!(get(&gateway, "/wallets", &cookie).status, 303);

    let said = gateway.said();
    let secret = cookie.strip_prefix("holdfast=").unwrap();
    for secret in [token, secret, PASSWORD, EMAIL] {
        assert!(!said.contains(secret), "{secret} is in the log");
    }
    gateway.stop();
}

#[test]
fn sqlite_forms_that_make_ways_in_want_a_sign_in_of_the_last_quarter_of_an_hour() {
    let (site, gateway) = start();
    let link = gateway.printed_after("first owner, once and within an hour: ");
    let path = link.strip_prefix(&gateway.printed_after("console: ")).unwrap().to_owned();
    let form = "email=ada%40example.com&password=correct+horse+battery&again=correct+horse+battery";
    assert_eq!(post(&gateway, &format!("/{path}"), form, "").status, 303);
    let form = "email=ada%40example.com&password=correct+horse+battery";
    let cookie = session(&post(&gateway, "/sign-in", form, ""));
    let shown = |path: &str| get(&gateway, path, &cookie);
    let key = "key=7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
    let ways_in = ["people", "admin-keys", "webhooks"].map(|folder| format!("/{folder}/new?{key}"));
    let is_asked = |answer: &Answer| {
        answer.header("location").is_some_and(|address| address.starts_with("/sign-in?"))
    };
    for path in &ways_in {
        assert!(!is_asked(&shown(path)), "{path} is shown to whoever has just signed in");
    }
    let older = "UPDATE sessions SET signed_in_at = signed_in_at - 900000000";
    drop(database::execute(&site.database(), older));
    for path in &ways_in {
        let asked = shown(path);
        assert!(asked.status == 303 && is_asked(&asked), "{path}: {asked:?}");
        let sent = post(&gateway, path, "", &cookie);
        assert!(is_asked(&sent), "{path}: {sent:?}");
    }
    assert_eq!(shown("/wallets").status, 200, "all else goes on");
    gateway.stop();
}

#[test]
fn where_its_port_is_taken_the_gateway_serves_without_a_console() {
    let (_site, first) = start();
    let taken = first.admin_address().to_string();
    let site = embedded::empty().with_env("HOLDFAST_ADMIN_LISTEN", &taken);
    let gateway = embedded::start(&site);
    assert!(gateway.printed_after("console: none, as ").starts_with(&taken));
    assert_eq!(gateway.send(&Request::get("/readyz")).status, 200);
    gateway.stop();
    first.stop();
}

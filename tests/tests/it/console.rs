//! The console in a browser's words: the embedded default's from the printed link to a signed-in page, the
//! holders' own listener, the playground.

use std::net::SocketAddr;

use holdfast_tests::config::{ADMIN_TOKEN, SIM};
use holdfast_tests::events::{DONE, chunk};
use holdfast_tests::{Account, Answer, Config, Gateway, Request, Site, database};

use crate::embedded;

const EMAIL: &str = "ada@example.com";
const PASSWORD: &str = "correct horse battery";

fn start() -> (Site, Gateway) {
    let site = embedded::empty().with_env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
    let gateway = embedded::start(&site);
    (site, gateway)
}

/// Sends a request as a page at this listener would.
fn send_to(listener: SocketAddr, request: &Request) -> Answer {
    request.clone().host(&listener.to_string()).send(listener)
}

pub(crate) fn post_to(listener: SocketAddr, path: &str, form: &str, cookie: &str) -> Answer {
    let request = Request::post(path, form)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Sec-Fetch-Site", "same-origin")
        .header("Cookie", cookie);
    send_to(listener, &request)
}

fn post(gateway: &Gateway, path: &str, form: &str, cookie: &str) -> Answer {
    post_to(gateway.admin_address(), path, form, cookie)
}

pub(crate) fn get_from(listener: SocketAddr, path: &str, cookie: &str) -> Answer {
    send_to(listener, &Request::get(path).header("Cookie", cookie))
}

fn get(gateway: &Gateway, path: &str, cookie: &str) -> Answer {
    get_from(gateway.admin_address(), path, cookie)
}

/// The session of this name that an answer sets.
pub(crate) fn session_named(name: &str, answer: &Answer) -> String {
    let cookies = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
    let mut lines = cookies.map(|(_, line)| line.as_str());
    let line = lines.find(|line| line.starts_with(&format!("{name}="))).unwrap();
    assert!(line.contains("HttpOnly"), "{line}");
    line.split(';').next().unwrap().to_owned()
}

/// The session that an answer sets.
fn session(answer: &Answer) -> String {
    session_named("holdfast", answer)
}

/// Signs the first owner of the embedded default in, and tells their cookie.
fn owner(gateway: &Gateway) -> String {
    let link = gateway.printed_after("link for the first owner, valid once within an hour: ");
    let path = link.strip_prefix(&gateway.printed_after("console: ")).unwrap().to_owned();
    let form = "email=ada%40example.com&password=correct+horse+battery&again=correct+horse+battery";
    assert_eq!(post(gateway, &format!("/{path}"), form, "").status, 303);
    let form = "email=ada%40example.com&password=correct+horse+battery";
    session(&post(gateway, "/sign-in", form, ""))
}

#[test]
fn the_printed_link_makes_the_first_owner_who_signs_in_and_out() {
    let (_site, gateway) = start();
    let link = gateway.printed_after("link for the first owner, valid once within an hour: ");
    let base = gateway.printed_after("console: ");
    assert_eq!(base, format!("http://{}/", gateway.admin_address()));
    let path = format!("/{}", link.strip_prefix(&base).unwrap());
    let token = path.strip_prefix("/link/").unwrap();

    assert_eq!(get(&gateway, &path, "").status, 200, "who only looks has not used it");
    let form = "email=ada%40example.com&password=correct+horse+battery&again=correct+horse+battery";
    assert_eq!(post(&gateway, &path, form, "").status, 303);
    let again = post(&gateway, &path, form, "");
    assert_eq!((again.status, again.header("location")), (303, Some("/")), "a double click");

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

    let other = form.replace("correct", "another");
    let used = format!("{other}&again=another+horse+battery");
    assert_eq!(post(&gateway, &path, &used, "").status, 404, "the link works once");

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
    let cookie = owner(&gateway);
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
    assert!(gateway.printed_after("console: off, because ").starts_with(&taken));
    assert_eq!(gateway.send(&Request::get("/readyz")).status, 200);
    gateway.stop();
    first.stop();
}

/// Invites somebody from beside the database, who takes the role by a password at this listener.
fn join(site: &Site, listener: SocketAddr, email: &str, role: &[&str]) {
    let invited = site.json(&[&["person", "invite", email, "--role"], role].concat());
    let link = invited["url"].as_str().unwrap().to_owned();
    let path = &link[link.find("/link/").unwrap()..];
    let form = "password=correct+horse+battery&again=correct+horse+battery";
    assert_eq!(post_to(listener, path, form, "").status, 303, "{email}");
}

pub(crate) fn sign_in_at(listener: SocketAddr, email: &str) -> Answer {
    let email = email.replace('@', "%40");
    post_to(listener, "/sign-in", &format!("email={email}&password=correct+horse+battery"), "")
}

#[test]
fn holders_have_a_listener_of_their_own() {
    let config = Config::simulated().set("console", "listen", "\"127.0.0.1:0\"");
    let (site, _account) = Site::funded(&config);
    let gateway = site.serve();
    let (admin, console) = (gateway.admin_address(), gateway.console_address());
    join(&site, console, "ada@example.com", &["holder_admin", "--wallet", "main"]);
    join(&site, admin, "bob@example.com", &["owner"]);

    let signed_in = sign_in_at(console, "ada@example.com");
    let cookie = session_named("holdfast-holder", &signed_in);
    let page = get_from(console, "/", &cookie);
    assert!(page.status == 200 && page.text().contains("10.00 USD"), "{page:?}");
    assert!(page.text().contains(&gateway.base_url()), "its snippets have the address of the API");
    for path in ["/keys", "/operations", "/usage", "/models", "/people", "/webhooks", "/account"] {
        assert_eq!(get_from(console, path, &cookie).status, 200, "{path}");
    }
    for path in [
        "/jobs",
        "/trail",
        "/admin-keys",
        "/admin-keys/new",
        "/wallets/new",
        "/admin/v1/wallets",
        "/admin/openapi.json",
        "/metrics",
        "/playground",
    ] {
        let mut answers = vec![get_from(console, path, &cookie)];
        answers.push(send_to(
            console,
            &Request::get(path).bearer(ADMIN_TOKEN).header("Cookie", &cookie),
        ));
        assert!(answers.iter().all(|it| it.status == 404), "{path} {answers:?}");
    }
    assert_eq!(send_to(console, &Request::get("/healthz")).status, 200);
    let elsewhere = Request::get("/").host("evil.example").send(console);
    assert_eq!(elsewhere.status, 421);

    let there = sign_in_at(admin, "ada@example.com");
    assert!(there.status == 403 && there.text().contains("holders&#39; console"), "{there:?}");
    let here = sign_in_at(console, "bob@example.com");
    assert!(here.status == 403 && here.text().contains("no role for a wallet"), "{here:?}");
    let operator = session(&sign_in_at(admin, "bob@example.com"));
    for (listener, cookie) in [(admin, &cookie), (console, &operator)] {
        assert_eq!(get_from(listener, "/", cookie).status, 303, "a session is of its listener");
    }
    let renamed = operator.replace("holdfast=", "holdfast-holder=");
    assert_eq!(get_from(console, "/", &renamed).status, 303, "and of its role");
    let invited = site.json(&["person", "invite", "cleo@example.com", "--role", "support"]);
    let link = invited["url"].as_str().unwrap();
    let link = get_from(console, &link[link.find("/link/").unwrap()..], "");
    assert_eq!(link.status, 404, "an operator's link is none here");
    gateway.stop();
}

#[test]
fn somebody_with_both_kinds_of_roles_is_a_holder_at_the_holders_listener() {
    let config = Config::simulated().set("console", "listen", "\"127.0.0.1:0\"").set(
        "console",
        "url",
        "\"http://localhost:1\"",
    );
    let (site, _account) = Site::funded(&config);
    let gateway = site.serve();
    let admin = gateway.admin_address();
    join(&site, admin, "ada@example.com", &["owner"]);
    let role = ["holder_viewer", "--wallet", "main"];
    let invite = ["person", "invite", "ada@example.com", "--role"];
    let invited = site.json(&[&invite[..], &role].concat());
    let link = invited["url"].as_str().unwrap().to_owned();
    assert!(link.starts_with("http://localhost:1/link/"), "{link}");
    let cookie = session(&sign_in_at(admin, "ada@example.com"));
    let path = link.strip_prefix("http://localhost:1").unwrap();
    assert_eq!(post(&gateway, path, "", &cookie).status, 303);

    // The URL names the host that is answered, whatever the socket is.
    let console = gateway.console_address();
    let ask = |request: Request| request.host("localhost:1").send(console);
    let form = "email=ada%40example.com&password=correct+horse+battery";
    let signed_in = ask(Request::post("/sign-in", form)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Origin", "http://localhost:1"));
    let cookie = session_named("holdfast-holder", &signed_in);
    let page = ask(Request::get("/").header("Cookie", &cookie));
    assert!(page.text().contains("holder_viewer") && !page.text().contains("Admin keys"));
    let account = ask(Request::get("/account/role").header("Cookie", &cookie));
    assert!(!account.text().contains("owner"), "{}", account.text());
    gateway.stop();
}

#[test]
fn over_https_the_cookies_of_the_holders_listener_are_of_its_host_alone() {
    let config = Config::simulated().set("console", "listen", "\"127.0.0.1:0\"").set(
        "console",
        "url",
        "\"https://wallet.example.com\"",
    );
    let (site, _account) = Site::funded(&config);
    let gateway = site.serve();
    let role = ["person", "invite", "ada@example.com", "--role", "holder_viewer", "--wallet"];
    let invited = site.json(&[&role[..], &["main"]].concat());
    let link = invited["url"].as_str().unwrap();
    let path = link.strip_prefix("https://wallet.example.com").unwrap();
    let console = gateway.console_address();
    let send = |host: &str, request: Request| request.host(host).send(console);
    let form = |path: &str, form: &str| {
        let request = Request::post(path, form).header("Sec-Fetch-Site", "same-origin");
        request.header("Content-Type", "application/x-www-form-urlencoded")
    };
    let password = "password=correct+horse+battery&again=correct+horse+battery";
    assert_eq!(send("wallet.example.com", form(path, password)).status, 303);
    let sign_in = form("/sign-in", "email=ada%40example.com&password=correct+horse+battery");
    let signed_in = send("wallet.example.com", sign_in);
    let cookies = signed_in.headers.iter().filter(|(name, _)| name == "set-cookie");
    let cookies: Vec<_> = cookies.map(|(_, line)| line.as_str()).collect();
    assert_eq!(cookies.len(), 2, "the session and the mark of the browser: {cookies:?}");
    for line in &cookies {
        assert!(line.starts_with("__Host-holdfast-holder"), "{line}");
        for attribute in ["; Secure", "; HttpOnly", "; SameSite=Lax", "; Path=/"] {
            assert!(line.contains(attribute), "{line}");
        }
        assert!(!line.contains("Domain"), "{line}");
    }
    let cookie = session_named("__Host-holdfast-holder", &signed_in);
    let ask = |cookie: &str| Request::get("/").header("Cookie", cookie);
    assert_eq!(send("wallet.example.com", ask(&cookie)).status, 200);
    let plain = cookie.replace("__Host-", "");
    assert_eq!(send("wallet.example.com", ask(&plain)).status, 303, "a plain name is none");
    assert_eq!(send(&console.to_string(), ask(&cookie)).status, 421, "nor is another host");
    gateway.stop();
}

#[test]
fn sqlite_a_renewed_link_is_told_where_the_persons_roles_cannot_be_read() {
    let config = Config::simulated().set("console", "listen", "\"127.0.0.1:0\"").set(
        "console",
        "url",
        "\"http://localhost:1\"",
    );
    let (site, _account) = Site::funded(&config);
    let gateway = site.serve();
    let (admin, console) = (gateway.admin_address(), gateway.console_address());
    let role = ["person", "invite", "ada@example.com", "--role", "holder_viewer", "--wallet"];
    let invited = site.json(&[&role[..], &["main"]].concat());
    let issued = site.json(&["admin-key", "issue", "--name", "me", "--role", "owner"]);
    let path = format!("/admin/v1/people/{}/link", invited["id"].as_str().unwrap());
    let renew = || {
        let request = Request::post(&path, "{}").bearer(issued["key"].as_str().unwrap());
        let key = holdfast_tests::request_key();
        let request = request.header("Idempotency-Key", &key);
        let told = send_to(admin, &request.header("Content-Type", "application/json"));
        assert_eq!(told.status, 200, "{told:?}");
        told.json()["url"].as_str().unwrap().to_owned()
    };
    assert!(renew().starts_with("http://localhost:1/link/"), "a holder's link");
    // The transaction that makes the link leaves an address that is none, so the person cannot be read after it.
    let unreadable = "CREATE TRIGGER unreadable AFTER UPDATE ON person_wallet_links
        BEGIN UPDATE people SET email = 'nobody' WHERE id = NEW.person_id; END";
    drop(database::execute(&site.database(), unreadable));
    let link = renew();
    assert!(link.contains("/link/") && !link.starts_with("http://localhost:1/"), "{link}");
    for sql in [
        "DROP TRIGGER unreadable",
        "UPDATE people SET email = 'ada@example.com' WHERE email = 'nobody'",
    ] {
        drop(database::execute(&site.database(), sql));
    }
    let path = &link[link.find("/link/").unwrap()..];
    let shown = Request::get(path).host("localhost:1").send(console);
    assert_eq!(shown.status, 200, "it is the person's link all the same");
    gateway.stop();
}

/// A form of the playground.
fn playground(account: &Account, request_key: &str, message: &str) -> String {
    format!("api_key={}&model={SIM}&message={message}&request_key={request_key}", account.key)
}

/// What the page's script sends to read the answer as it comes.
fn stream(listener: SocketAddr, form: &str, cookie: &str) -> Request {
    Request::post("/playground/stream", form)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Sec-Fetch-Site", "same-origin")
        .header("Cookie", cookie)
        .host(&listener.to_string())
}

/// Text of the chunks of a stream.
fn content(events: &[String]) -> String {
    let events = events.iter().filter(|event| *event != DONE && event.starts_with("data: "));
    let delta = |event: &String| {
        chunk(event)["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
    };
    events.map(delta).collect()
}

#[test]
fn the_playground_sends_a_request_twice_and_it_is_charged_once() {
    let (site, gateway) = start();
    let cookie = owner(&gateway);
    let account = site.another_key("default", "mine");
    let page = get(&gateway, "/playground", &cookie);
    assert!(page.status == 200 && page.text().contains("holdfast/sim-1"), "{page:?}");
    assert_eq!(get(&gateway, "/playground", "").status, 303, "it is for who is signed in");

    let key = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
    let form = playground(&account, key, "hello");
    let first = post(&gateway, "/playground", &form, &cookie);
    assert!(first.status == 200 && first.text().contains("You said: hello"), "{first:?}");
    assert!(first.text().contains("<dd><code>false</code></dd>"), "{}", first.text());
    let charged = site.balance(&account);
    let second = post(&gateway, "/playground", &form, &cookie);
    assert!(
        second.text().contains("sent again without a run")
            && second.text().contains("You said: hello")
    );
    assert!(second.text().contains("Charge breakdown"), "{}", second.text());
    assert_eq!(site.balance(&account), charged);
    assert!(charged.0 < 10_000_000);

    let admin = gateway.admin_address();
    let streamed = stream(admin, &form, &cookie).begin(admin).events().rest();
    assert_eq!(streamed.head.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(streamed.head.header("idempotent-replayed"), Some("true"));
    assert_eq!(streamed.events.last().map(String::as_str), Some(DONE), "{streamed:?}");
    let outcome = post(&gateway, "/playground/operation", &form, &cookie).json();
    assert_eq!(outcome["status"], "completed");
    assert!(outcome["charge"].as_str().unwrap().ends_with(" USD"), "{outcome}");
    let why = get(&gateway, outcome["href"].as_str().unwrap(), &cookie);
    assert!(why.text().contains("Charge breakdown"));

    let broken =
        playground(&account, "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c12", "%5B%5Bsim%3A+break%5D%5D");
    let broken = stream(admin, &broken, &cookie).begin(admin).events().rest();
    assert!(broken.events.iter().any(|event| event.contains("\"error\"")), "{broken:?}");
    let other = post(&gateway, "/playground", &form.replace("hello", "bye"), &cookie);
    assert!(other.text().contains("idempotency_key_conflict"), "{}", other.text());
    let secret = account.key.rsplit('_').next().unwrap();
    for text in [first.text(), second.text(), other.text(), &gateway.said(), &site.logs()] {
        assert!(!text.contains(secret), "the API key is told again");
    }
    gateway.stop();
}

#[test]
fn a_second_tab_joins_the_stream_of_the_playground() {
    let (site, gateway) = start();
    let cookie = owner(&gateway);
    let account = site.another_key("default", "mine");
    let message = "one+two+three+four%0A%5B%5Bsim%3A+pace+150ms%5D%5D";
    let form = playground(&account, "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c13", message);
    let admin = gateway.admin_address();
    let request = stream(admin, &form, &cookie);
    let mut tab = request.begin(admin).events();
    let first = tab.event();
    let joined = request.begin(admin).events().rest();
    assert_eq!(joined.head.header("idempotent-replayed"), Some("true"));
    assert_eq!(content(&joined.events), "You said: one two three four");
    let own = [vec![first], tab.rest().events].concat();
    assert_eq!(content(&own), "You said: one two three four");
    assert_eq!(site.verify()["ok"], true);
    gateway.stop();
}

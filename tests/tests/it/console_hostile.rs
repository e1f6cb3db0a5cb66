//! The console as whoever means harm meets it on the wire: what a request claims of itself is not believed.

use holdfast_tests::{Answer, Gateway, Request, Site, database};

use crate::embedded;

const EMAIL: &str = "ada@example.com";

fn start() -> (Site, Gateway, String) {
    let site = embedded::empty().with_env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
    let gateway = embedded::start(&site);
    let link = gateway.printed_after("link for the first owner, valid once within an hour: ");
    let base = gateway.printed_after("console: ");
    let path = format!("/{}", link.strip_prefix(&base).unwrap());
    (site, gateway, path)
}

fn send(gateway: &Gateway, request: Request) -> Answer {
    let admin = gateway.admin_address();
    request.host(&admin.to_string()).send(admin)
}

fn form(path: &str, form: &str) -> Request {
    Request::post(path, form)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Sec-Fetch-Site", "same-origin")
}

const OWNER: &str =
    "email=ada%40example.com&password=correct+horse+battery&again=correct+horse+battery";

#[test]
fn an_address_that_a_request_claims_to_come_from_is_not_believed() {
    let (_site, gateway, link) = start();
    assert_eq!(send(&gateway, form(&link, OWNER)).status, 303);
    let wrong = format!("email={}&password=wrong+horse+battery", EMAIL.replace('@', "%40"));
    let mut slowed = 0;
    for number in 1..=12 {
        let claimed = format!("198.51.100.{number}");
        let request = form("/sign-in", &wrong)
            .header("X-Forwarded-For", &claimed)
            .header("X-Real-IP", &claimed)
            .header("Forwarded", &format!("for={claimed}"));
        let answer = send(&gateway, request);
        assert!([401, 429].contains(&answer.status), "{answer:?}");
        slowed += u32::from(answer.status == 429);
    }
    assert!(slowed >= 6, "twelve addresses of one client are one: {slowed} were slowed down");
    gateway.stop();
}

#[test]
fn sqlite_a_link_that_is_too_old_makes_nobody_an_owner() {
    let (site, gateway, link) = start();
    for _scanner in 0..3 {
        assert_eq!(send(&gateway, Request::get(&link)).status, 200);
    }
    let older = "UPDATE person_links SET expires_at = 1";
    drop(database::execute(&site.database(), older));
    assert_eq!(send(&gateway, Request::get(&link)).status, 404);
    assert_eq!(send(&gateway, form(&link, OWNER)).status, 404);
    let people = database::execute(
        &site.database(),
        "SELECT count(*) FROM people WHERE email = 'ada@example.com'",
    );
    assert_eq!(people, ["0"]);
    gateway.stop();
}

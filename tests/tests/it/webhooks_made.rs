//! Webhooks from what happened to who is told, with nothing written by hand: money that is paid in over the
//! API is told to another process, which trusts the library of Standard Webhooks alone; and addresses that
//! nobody may be sent to are refused where the webhook is made.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use holdfast_tests::{Config, Request, Site, request_key};
use serde_json::{Value, json};

use crate::check::until;
use crate::clients::PYTHON;
use crate::webhooks_delivered::Owner;

/// A receiver in Python that says what it has verified.
struct VerifyingReceiver {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
    origin: String,
    _site: Site,
}

impl VerifyingReceiver {
    fn start() -> Self {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/webhook_receiver.py");
        let (site, script) = (Site::empty(), std::fs::read_to_string(script).unwrap());
        let mut command = PYTHON.on(&site, &script);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let origin = format!("http://127.0.0.1:{}", said.next().unwrap().unwrap());
        Self { child, said, origin, _site: site }
    }

    fn trust(&mut self, secret: &Value) {
        let mut stdin = self.child.stdin.as_ref().unwrap();
        writeln!(stdin, "{}", secret.as_str().unwrap()).unwrap();
    }

    /// The next event that was verified, and the id that it came under.
    fn next(&mut self) -> (Value, Value) {
        let mut told: Value = serde_json::from_str(&self.said.next().unwrap().unwrap()).unwrap();
        (told["event"].take(), told["id"].take())
    }
}

impl Drop for VerifyingReceiver {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

#[test]
fn sqlite_a_deposit_over_the_api_is_told_once_to_another_process() {
    let mut receiver = VerifyingReceiver::start();
    let allow = format!("[\"{}\"]", receiver.origin);
    let (site, account) = Site::funded(&Config::simulated().set("webhooks", "allow", &allow));
    let owner = Owner::new(&site);
    let gateway = site.serve();
    let (wallet, kinds) = (&account.wallet, json!(["wallet.credited"]));
    let made =
        json!({ "url": format!("{}/in", receiver.origin), "wallet_id": wallet, "kinds": kinds });
    let webhook = owner.create(&gateway, &made);
    receiver.trust(&webhook["secret"]);
    let deposit = |reference: &str, amount: i64| {
        json!({ "wallet_id": wallet, "amount_micros": amount, "source": "bank",
                "external_reference": reference })
    };
    let send = |key: &str, body: &Value| {
        let request = Request::post("/admin/v1/deposits", body.to_string());
        let admin = gateway.admin_address();
        let request = request.host(&format!("localhost:{}", admin.port())).bearer(owner.key());
        let request = request.header("Content-Type", "application/json");
        request.header("Idempotency-Key", key).send(admin)
    };
    let keys = [request_key(), request_key()];
    let first = send(&keys[0], &deposit("one", 2_500_000));
    assert_eq!(first.status, 201, "{first:?}");
    let (event, id) = receiver.next();
    assert_eq!(
        (&event["type"], &event["wallet_id"], &event["id"]),
        (&json!("wallet.credited"), &json!(wallet), &id),
        "{event}"
    );
    assert_eq!(event["data"]["amount_micros"], 2_500_000, "{event}");
    assert_eq!(event["data"]["currency"], "USD", "{event}");
    // Sent again it is told again to nobody: the next that comes is the next deposit's.
    let again = send(&keys[0], &deposit("one", 2_500_000));
    assert_eq!(again.header("idempotent-replayed"), Some("true"), "{again:?}");
    assert_eq!(send(&keys[0], &deposit("one", 2_500_001)).status, 409);
    let debit = json!({ "wallet_id": wallet, "amount_micros": -1, "reason": "a slip" });
    assert_eq!(owner.post(&gateway, "/adjustments", &debit).status, 201, "another kind of event");
    assert_eq!(send(&keys[1], &deposit("two", 1)).status, 201);
    let (event, other) = receiver.next();
    assert_eq!(event["data"]["amount_micros"], 1, "{event}");
    assert_ne!(id, other);
    let path = format!("/webhooks/{}/deliveries", webhook["id"].as_str().unwrap());
    until("both are delivered", || {
        let rows = owner.show(&gateway, &path)["data"].take();
        let rows = rows.as_array().unwrap();
        let done = rows.iter().all(|row| row["state"] == "delivered" && row["tries"] == 1);
        (done && rows.len() == 2).then_some(())
    });
    assert_eq!(site.balance(&account), (12_500_000, 0));
    gateway.stop();
    site.verify();
}

#[test]
fn addresses_that_nobody_may_be_sent_to_are_refused_over_the_api() {
    let (site, _account) = Site::funded(&Config::simulated());
    let owner = Owner::new(&site);
    let gateway = site.serve();
    for url in [
        // Not encrypted; another port; who is asked for a password; nothing to connect to.
        "http://hooks.example.com/in",
        "https://hooks.example.com:8443/in",
        "https://me:secret@hooks.example.com/in",
        "ftp://hooks.example.com/in",
        "not a URL",
        // Addresses of this machine and of networks behind it.
        "https://127.0.0.1/in",
        "https://10.0.0.1/in",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/in",
        "https://[fd00::1]/in",
        // IPv4 within IPv6: mapped, translated, tunnelled.
        "https://[::ffff:127.0.0.1]/in",
        "https://[::ffff:a00:1]/in",
        "https://[64:ff9b::7f00:1]/in",
        "https://[2002:7f00:1::1]/in",
        // Spellings of 127.0.0.1.
        "https://2130706433/in",
        "https://0x7f.1/in",
        // A name that is looked up, and leads here.
        "https://localhost/in",
    ] {
        let refused = owner.post(&gateway, "/webhooks", &json!({ "url": url }));
        let error = &refused.json()["error"];
        assert_eq!(
            (refused.status, &error["code"], &error["param"]),
            (400, &json!("invalid_value"), &json!("url")),
            "{url}: {refused:?}"
        );
        let told = error["message"].as_str().unwrap();
        assert!(!told.contains("secret") && !told.contains("127.0.0.1"), "{url}: {told}");
    }
    assert_eq!(owner.show(&gateway, "/webhooks")["data"], json!([]), "none was made");
    gateway.stop();
}

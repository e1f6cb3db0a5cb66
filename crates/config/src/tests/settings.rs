//! The digest of settings: what nodes share changes it, what is a node's own does not, and no secret is in it.

use holdfast_domain::secret::{ServerSecret, SettingsDigest};

use super::{LEAST, good};

fn digest(text: &str) -> SettingsDigest {
    let secret = ServerSecret::new(b"at least sixteen bytes").unwrap();
    good(text).settings_digest(&secret.settings_key())
}

/// The file with what is a node's own, and a provider that has a credential.
fn file(own: &str, key: &str) -> String {
    let provider = "[providers.acme]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    format!("{own}\n{provider}{key}\n{LEAST}")
}

const KEY: &str = "api_key = \"${OPENAI_API_KEY}\"";
const OWN: &str =
    "[server]\nlisten = \"127.0.0.1:1\"\nnode = \"one\"\nsecrets = [\"${HOLDFAST_SECRET}\"]";

#[test]
fn what_is_a_nodes_own_is_not_in_the_digest() {
    let whole = digest(&file(OWN, KEY));
    for own in [
        "",
        "[server]\nlisten = \"127.0.0.1:2\"\nnode = \"two\"",
        "[log]\nlevel = \"debug\"\nformat = \"json\"",
        "[database]\nurl = \"sqlite://elsewhere/holdfast.db\"",
        "[admin]\nlisten = \"127.0.0.1:3\"\ntoken = \"${HOLDFAST_ADMIN_TOKEN}\"",
        "[console]\nlisten = \"127.0.0.1:4\"\nplayground = true",
        "[server]\nurl = \"https://api.example.com\"",
        "[telemetry]\nendpoint = \"http://127.0.0.1:4318\"",
        "[limits]\nconnections = 1_024\nidle_time = \"60s\"",
    ] {
        let differs = digest(&file(own, KEY)) != whole;
        assert_eq!(differs, own.starts_with("[limits]\nconnections = 1_024"), "{own}");
    }
    // Another spelling of the same settings is the same.
    let minute = digest(&file("[limits]\nidle_time = \"60s\"", KEY));
    assert_eq!(digest(&file("[limits]\nidle_time = \"1m\"", KEY)), minute);
    let another = "api_key = \"another-credential\"";
    assert_eq!(digest(&file(OWN, another)), whole, "the credential is not in it");
    assert_ne!(digest(&file(OWN, "")), whole, "whether there is one is");
}

#[test]
fn whatever_nodes_share_is_in_the_digest() {
    let mut seen = vec![digest(LEAST)];
    let before = [
        "[limits]\nbody_bytes = 100_000",
        "[limits]\noperations_per_key = 7",
        "[operations]\nlease = \"31s\"",
        "[routes]\nfailures = 9",
        "[roles]\nsupport_refunds = { USD = 5_000_000 }",
        "[retention]\nresults = \"90m\"",
        "[retention]\nstatistics = \"48h\"",
        "[webhooks]\nallow = [\"https://hooks.example.com:8443\"]",
        "[providers.other]\nkind = \"simulated\"",
    ];
    let changes = [
        ("input = 3", "input = 4"),
        ("context_tokens = 1000", "context_tokens = 1001"),
        ("contract = 1", "contract = 2"),
        ("model = \"sim-1\"", "model = \"sim-tools\""),
        ("model = \"sim-1\"", "model = \"sim-1\"\nweight = 3"),
        ("2026-01-01", "2026-01-02"),
    ];
    let texts = before.map(|lines| format!("{lines}\n{LEAST}")).into_iter();
    for text in texts.chain(changes.map(|(old, new)| LEAST.replacen(old, new, 1))) {
        let digest = digest(&text);
        assert!(!seen.contains(&digest), "{text}");
        seen.push(digest);
    }
}

#[test]
fn nodes_that_write_under_other_secrets_have_other_digests() {
    let config = good(LEAST);
    let key = |byte| ServerSecret::new(&[byte; 16]).unwrap().settings_key();
    assert_eq!(config.settings_digest(&key(1)), config.settings_digest(&key(1)));
    assert_ne!(config.settings_digest(&key(1)), config.settings_digest(&key(2)));
    let shown = config.settings_digest(&key(1)).to_string();
    assert!(shown.len() == 16 && shown.bytes().all(|it| it.is_ascii_hexdigit()), "{shown}");
}

#[test]
fn every_limit_that_differs_is_taken_or_kept() {
    let limits = [
        "header_bytes = 2_000",
        "body_bytes = 100_000",
        "header_time = \"1s\"",
        "body_time = \"1s\"",
        "write_time = \"1s\"",
        "idle_time = \"1s\"",
        "connections_per_address = 7",
        "body_bytes_in_memory = 2_000_000",
        "commit_queue = 9",
        "answer_bytes = 2_000_000",
        "operations_per_key = 7",
        "waiters_per_operation = 7",
        "retry_wait = \"1s\"",
        "result_bytes = 2_000_000",
        "result_bytes_per_key = 2_000_000",
    ];
    for limit in limits {
        let change = good(LEAST).change_to(&good(&format!("[limits]\n{limit}\n{LEAST}")));
        let told: Vec<_> = change.taken.iter().map(String::as_str).chain(change.kept).collect();
        let key = limit.split(' ').next().unwrap();
        assert_eq!(told, [format!("limits.{key}")]);
    }
}

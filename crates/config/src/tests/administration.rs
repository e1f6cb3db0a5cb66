//! Settings of the administration: who may refund, where it is served, who is sent webhooks.

use holdfast_domain::admin::WalletBounds;

use super::{LEAST, good, mistakes};

#[test]
fn allowances_of_a_role_are_whole_micros_of_a_currency() {
    let roles = |line: &str| format!("[roles]\n{line}\n{LEAST}");
    let config = good(&roles("support_refunds = { USD = 5_000_000, EUR = 0 }"));
    let allowances: Vec<_> = config.roles.support_refunds.iter().collect();
    let expected = [("EUR", 0), ("USD", 5_000_000)];
    for ((currency, micros), (code, number)) in allowances.into_iter().zip(expected) {
        assert_eq!((currency.as_str(), micros.get()), (code, number));
    }
    assert!(good(LEAST).roles.support_refunds.is_empty());
    let most = 1_000_000_000_000_000_u64;
    for (line, mistake) in [
        (
            "support_refunds = { usd = 5 }",
            "`roles.support_refunds.usd` is not a currency code: write three capital letters, like USD"
                .to_owned(),
        ),
        (
            "support_refunds = { USD = -5 }",
            format!("`roles.support_refunds.USD` must be from 0 to {most}"),
        ),
    ] {
        assert_eq!(mistakes(&roles(line)), [format!("file:2: {mistake}")]);
    }
    assert!(mistakes(&roles("refunds = 5"))[0].contains("unknown key `refunds` in roles"));
}

#[test]
fn administration_has_an_address_that_keeps_its_keys_from_the_network() {
    let table = |listen: &str, more: &str| {
        format!("[admin]\nlisten = \"{listen}\"\ntoken = \"0123456789abcdef\"\n{more}\n{LEAST}")
    };
    let https = "url = \"https://admin.example.com\"\nproxies = [\"10.0.0.0/8\"]";
    let admin = good(&table("10.0.0.1:8081", https)).admin.unwrap();
    assert_eq!(admin.url.unwrap().to_string(), "https://admin.example.com");
    assert_eq!(admin.proxies.len(), 1);
    assert!(good(&table("0.0.0.0:8081", "")).admin.unwrap().url.is_none());
    assert!(good(&table("127.0.0.1:8081", "url = \"http://localhost:8081\"")).admin.is_some());
    for (listen, more, said) in [
        ("10.0.0.1:8081", "url = \"http://admin.example.com\"", "plain text"),
        ("127.0.0.1:8081", "url = \"https://admin.example.com/console\"", "scheme and host"),
        ("127.0.0.1:8081", "url = \"admin.example.com\"", "scheme and host"),
        ("127.0.0.1:8081", "proxies = [\"a proxy\"]", "10.0.0.0/8"),
    ] {
        let found = mistakes(&table(listen, more));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(said), "{found:?}");
    }
}

#[test]
fn a_wallet_has_bounds_which_the_administration_sets() {
    let table = |more: &str| {
        format!("[admin]\nlisten = \"127.0.0.1:1\"\ntoken = \"0123456789abcdef\"\n{more}\n{LEAST}")
    };
    let usual = good(&table("")).admin.unwrap();
    assert_eq!(usual.bounds, WalletBounds::DEFAULT);
    assert_eq!(usual.creations_per_minute, WalletBounds::CREATIONS_PER_MINUTE);
    let set = "api_keys_per_wallet = 1\npeople_per_wallet = 2\nwebhooks_per_wallet = 3\n\
        admin_keys_per_wallet = 4\ncreations_per_minute = 5";
    let set = good(&table(set)).admin.unwrap();
    let bounds = WalletBounds { api_keys: 1, people: 2, webhooks: 3, admin_keys: 4 };
    assert_eq!((set.bounds, set.creations_per_minute), (bounds, 5));
    for bad in
        ["api_keys_per_wallet = 0", "webhooks_per_wallet = 1_001", "creations_per_minute = -1"]
    {
        let key = bad.split(' ').next().unwrap();
        let found = mistakes(&table(bad));
        assert!(
            found.len() == 1 && found[0].contains(&format!("`admin.{key}` must be")),
            "{found:?}"
        );
    }
}

#[test]
fn holders_have_a_listener_that_keeps_their_passwords_from_the_network() {
    let table = |lines: &str| format!("[console]\n{lines}\n{LEAST}");
    let none = good(LEAST).console;
    assert!(none.holders.is_none() && !none.playground);
    let console = good(&table("playground = true")).console;
    assert!(console.holders.is_none() && console.playground, "it is no listener's alone");
    let brand = "name = \"Acme AI\"\nsupport_url = \"https://help.example.com/\"";
    let brand = good(&table(brand)).console.brand;
    assert_eq!(brand.name.as_deref(), Some("Acme AI"));
    assert_eq!(brand.support_url.as_deref(), Some("https://help.example.com/"));
    assert!(brand.logo.is_none() && brand.top_up_url.is_none());
    let https =
        "listen = \"10.0.0.1:1\"\nurl = \"https://Wallet.example.com\"\nproxies = [\"10.0.0.2\"]";
    let holders = good(&table(https)).console.holders.unwrap();
    assert_eq!(holders.origin(holders.listen.first()), "https://wallet.example.com");
    assert_eq!(holders.proxies.len(), 1);
    let local = good(&table("listen = \"127.0.0.1:7\"")).console.holders.unwrap();
    assert_eq!(local.origin(local.listen.first()), "http://127.0.0.1:7");
    for (lines, said) in [
        ("listen = \"10.0.0.1:1\"", "plain text"),
        ("listen = \"10.0.0.1:1\"\nurl = \"http://a\"", "plain text"),
        ("listen = \"10.0.0.1:1\"\nurl = \"a\"", "scheme and host"),
        ("listen = \"here\"", "IP:PORT"),
        ("url = \"https://a\"", "which is not set"),
        ("playground = \"yes\"", "true or false"),
        ("listen = \"127.0.0.1:8080\"", "write another port"),
        ("token = \"x\"", "unknown key"),
        ("support_url = \"http://help.example.com\"", "https:// URL"),
        ("top_up_url = \"javascript:x\"", "https:// URL"),
        ("logo = \"logo.png\"", "whole path"),
        ("name = \"\"", "not a name"),
    ] {
        let found = mistakes(&table(lines));
        assert_eq!(found.len(), 1, "{lines}: {found:?}");
        assert!(found[0].contains(said), "{found:?}");
    }
}

#[test]
fn receivers_of_webhooks_are_listed_by_their_origin() {
    let allowing = |list: &str| format!("[webhooks]\nallow = [{list}]\n{LEAST}");
    let listed = good(&allowing(r#""http://127.0.0.1:9000", "https://Hooks.Internal/""#));
    let listed: Vec<_> = listed.webhooks.allow.iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["http://127.0.0.1:9000", "https://hooks.internal"]);
    for (bad, told) in [
        (r#""hooks.internal""#, "write https://HOST"),
        (r#""https://hooks.internal/in""#, "more than an origin"),
        (r#""https://me@hooks.internal""#, "remove it"),
    ] {
        let told_here = mistakes(&allowing(bad)).join("\n");
        assert!(told_here.contains("`webhooks.allow`") && told_here.contains(told), "{told_here}");
    }
}

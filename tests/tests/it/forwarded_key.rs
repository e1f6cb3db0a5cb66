//! The key of a request in the header that proxies forward: one run, whichever header a retry has it in.

use holdfast_tests::{Config, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;

use crate::bodies::acme;
use crate::check::error;

#[test]
fn a_forwarded_key_runs_once_and_goes_no_further() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let sidecar = site.sidecar(gateway.address(), &[]);
    let (key, other) = (request_key(), request_key());
    let bare =
        || Request::completion(&account.key, "", acme("Say hello")).without("Idempotency-Key");
    let forwarded = || bare().header("X-Idempotency-Key", &key);
    let first = gateway.send(&forwarded());
    assert_eq!((first.status, first.header("idempotency-key")), (200, Some(&*key)), "{first:?}");
    let again = [
        gateway.send(&bare().header("Idempotency-Key", &key)),
        gateway.send(&forwarded().header("Idempotency-Key", &key)),
        sidecar.send(&forwarded()),
    ];
    for again in again {
        assert_eq!((again.status, &again.body), (200, &first.body));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.header("idempotency-key"), Some(&*key));
    }
    for door in [&gateway, &sidecar] {
        let differing = door.send(&forwarded().header("Idempotency-Key", &other));
        let told = error(Code::IdempotencyKeyMalformed).echo(&other).check(&differing);
        let message = told["message"].as_str().unwrap();
        assert!(message.contains("X-Idempotency-Key"), "{message}");
    }
    let arrived = upstream.arrived();
    let names: Vec<_> = arrived.iter().flat_map(|it| it.headers()).map(|(name, _)| name).collect();
    assert_eq!(arrived.len(), 1);
    assert!(!names.iter().any(|name| name == "x-idempotency-key"), "{names:?}");
    gateway.stop();
    site.verify();
}

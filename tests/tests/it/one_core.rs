//! Where it has one core the gateway is one thread, and does there what it does on several.

use holdfast_tests::{Config, Gate, Reply, Request, Site, Upstream, request_key};

use crate::bodies::acme;
use crate::check::{check_completion, until};

const FUNDS: i64 = 10_000_000;
const CHARGE: i64 = 367;

#[test]
fn one_core_runs_several_operations_at_once_and_lets_them_finish() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve_on_one_core();
    let requests = [(); 3].map(|()| {
        let key = request_key();
        (Request::completion(&account.key, &key, acme("Say hello")), key)
    });
    let running = requests.each_ref().map(|(request, _key)| request.begin(gateway.address()));
    upstream.wait_for(3);
    gateway.terminate();
    until("it drains", || (gateway.send(&Request::get("/readyz")).status == 503).then_some(()));
    gate.open();
    for (running, (_request, key)) in running.into_iter().zip(&requests) {
        check_completion(&running.answer(), key, false);
    }
    assert!(gateway.wait().success());

    let gateway = site.serve_on_one_core();
    for (request, key) in &requests {
        check_completion(&gateway.send(request), key, true);
    }
    gateway.stop();
    assert_eq!(upstream.runs(), 3);
    assert_eq!(site.balance(&account), (FUNDS - 3 * CHARGE, 0));
    site.verify();
}

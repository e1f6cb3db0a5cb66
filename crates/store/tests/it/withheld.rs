//! Results that a load leaves where they are, because they are larger than what it may bring along.

use holdfast_domain::{Journal, OperationId};
use holdfast_store::{Options, Store};
use holdfast_testkit::laws::Stores;
use holdfast_testkit::laws::tenant::{Tenant, answer_for, finish};
use holdfast_testkit::sample;

use crate::scratch::Scratch;
use crate::server::Server;

async fn check(stores: &dyn Stores, options: Options) {
    let tenant = Tenant::new(stores, 10_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let ended = tenant.step(operation.id, finish(&operation, 20, 10)).await;
    let whole = answer_for(tenant.api_key);
    for (bytes_max, withheld) in
        [(whole.sealed.len() - 1, whole.sealed.len()), (whole.sealed.len(), 0)]
    {
        let options = Options { result_bytes_max: bytes_max, ..options.clone() };
        let store = Store::open(options).await.unwrap();
        let seen = store.load(ended.id).await.unwrap();
        assert_eq!(seen.operation.as_ref(), Some(&ended));
        let result = seen.result.unwrap();
        assert_eq!((result.credential, result.nonce), (whole.credential, whole.nonce));
        assert_eq!(result.withheld, withheld);
        assert_eq!(result.sealed.is_empty(), withheld > 0);
        assert_eq!(store.result(ended.id).await.unwrap(), Some(whole.clone()));
        let nothing: OperationId = sample::fresh();
        assert_eq!(store.result(nothing).await.unwrap(), None);
        assert!(store.clock().await.unwrap() >= seen.now);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn sqlite_a_large_result_is_read_by_itself() {
    let scratch = Scratch::open().await;
    check(&scratch, Options::new(scratch.folder.url())).await;
}

#[tokio::test]
async fn postgres_a_large_result_is_read_by_itself() {
    let server = Server::open().await;
    check(&server, Options::new(server.database.url())).await;
}

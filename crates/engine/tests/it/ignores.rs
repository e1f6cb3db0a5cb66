//! Members that a model ignores: part of the request that its key is bound to, and of nothing that is checked,
//! held for or sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::Provider;
use holdfast_domain::model::IgnoredField;
use holdfast_domain::ports::{Call, CallFailure, Sink, UnsupportedParam};
use holdfast_domain::private::Private;
use holdfast_domain::request::Request;
use holdfast_domain::usage::UsageReport;
use holdfast_engine::{Catalogue, QuoteRequest, RequestFailure, ServingConfig};
use holdfast_testkit::{Script, ScriptedProvider};

use crate::world::{HELLO, HELLO_HOLDS, World, assert_failed, body, model, says, setup, text};

const USER: &str = r#"{"model":"holdfast/sample","user":"ada","store":true,"seed":7,"messages":[{"role":"user","content":"hello"}]}"#;
const USER_RESPELLED: &str = r#"{"seed":7,"store":true,"user":"ada","messages":[{"content":"hello","role":"user"}], "model":"holdfast/sample"}"#;
const OTHER_USER: &str = r#"{"model":"holdfast/sample","user":"eve","store":true,"seed":7,"messages":[{"role":"user","content":"hello"}]}"#;
const ALL: [IgnoredField; 3] = [IgnoredField::User, IgnoredField::Store, IgnoredField::Seed];

/// Provider without `user`, which adds a mark to every prompt.
#[derive(Debug)]
struct Narrow(ScriptedProvider);

#[async_trait]
impl Provider for Narrow {
    fn check_supported(&self, request: &Request) -> Result<(), UnsupportedParam> {
        match request.user {
            None => Ok(()),
            Some(_) => Err(UnsupportedParam { param: "user".into(), rule: "left out".into() }),
        }
    }

    fn added_prompt_bytes(&self, _request: &Request) -> u64 {
        37
    }

    async fn run(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, CallFailure> {
        self.0.run(call, sink).await
    }
}

async fn world(ignores: &[IgnoredField], narrow: &Arc<Narrow>) -> World {
    let provider: Arc<dyn Provider> = Arc::<Narrow>::clone(narrow);
    setup()
        .model(|model| model.contract.ignores = ignores.to_vec())
        .provider("one", provider)
        .start()
        .await
}

fn narrow(scripts: impl IntoIterator<Item = Script>) -> Arc<Narrow> {
    Arc::new(Narrow(ScriptedProvider::new(scripts)))
}

#[tokio::test(start_paused = true)]
async fn ignored_members_are_neither_refused_nor_sent() {
    let provider = narrow([says("hi")]);
    let refusing = world(&[IgnoredField::Store, IgnoredField::Seed], &provider).await;
    assert_failed!(refusing.ask(1, USER).await, RequestFailure::BadRequest(bad) if bad.param.as_deref() == Some("user"));
    let refusing = world(&[IgnoredField::User], &provider).await;
    assert_failed!(refusing.ask(1, USER).await, RequestFailure::BadRequest(bad) if bad.param.as_deref() == Some("store"));
    let taking = world(&ALL, &provider).await;
    body(&taking.ask(1, USER).await);
    let sent = &provider.0.calls()[0].request;
    assert_eq!((&sent.user, sent.store, sent.seed), (&None, None, None));
    assert_eq!(provider.0.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_bound_to_ignored_members_whatever_is_ignored_later() {
    let provider = narrow([says("hi")]);
    let mut world = world(&ALL, &provider).await;
    let first = text(&world.ask(1, USER).await).to_owned();
    for ignores in [&ALL[..], &[]] {
        let mut changed = model();
        changed.contract.ignores = ignores.to_vec();
        let provider: Arc<dyn Provider> = Arc::<Narrow>::clone(&provider);
        let providers = BTreeMap::from([("one".to_owned(), provider)]);
        let catalogue = Catalogue::new([changed]);
        world.reload(ServingConfig::new(catalogue, providers, world.offer.rules, None));
        assert_eq!(text(&world.ask(1, USER).await), first);
        assert_eq!(text(&world.ask(1, USER_RESPELLED).await), first);
        assert_failed!(world.ask(1, OTHER_USER).await, RequestFailure::OtherRequest);
        assert_failed!(world.ask(1, HELLO).await, RequestFailure::OtherRequest);
    }
    assert_eq!(provider.0.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hold_counts_what_a_provider_adds_and_not_what_is_ignored() {
    let provider = narrow([]);
    let world = world(&ALL, &provider).await;
    let submission = world.submission(1, USER).await;
    for text in [HELLO, USER] {
        let quote = world.engine.quote(QuoteRequest {
            serving: Arc::clone(&submission.serving),
            caller: Arc::clone(&submission.caller),
            body: Private(Bytes::from(text)),
            max_charge: Ok(None),
        });
        assert_eq!(quote.await.unwrap().hold.get(), HELLO_HOLDS + 37, "{text}");
    }
}

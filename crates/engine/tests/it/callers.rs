//! Who is let in: credentials, what is remembered of them, and for how long.

use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_domain::credential::{Bearer, Grant};
use holdfast_domain::ports::NewApiKey;
use holdfast_domain::secret::CredentialSecret;
use holdfast_domain::{ApiKeyId, Timestamp};
use holdfast_engine::{AuthError, Secrets};
use holdfast_testkit::{Commands as _, sample};

use crate::world::{PEER, World, bearer, credential, pass, secret, secs, setup, turns};

const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

async fn is_let_in(world: &World, bearer: &Bearer) -> bool {
    match world.engine.authenticate(&bearer.expose(), PEER).await {
        Ok(_caller) => true,
        Err(AuthError::Invalid | AuthError::TooManyUnknown) => false,
        Err(AuthError::Unavailable(error)) => panic!("{error:?}"),
    }
}

fn reads(world: &World) -> usize {
    world.store.credential_reads.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn a_known_credential_is_looked_up_once_in_five_seconds() {
    let world = setup().start().await;
    let caller = world.engine.authenticate(&bearer(1).expose(), PEER).await.unwrap();
    assert_eq!(caller.api_key.id, sample::API_KEY);
    assert_eq!(caller.currency, sample::usd());
    assert!(is_let_in(&world, &bearer(1)).await);
    assert_eq!(reads(&world), 1);
    pass(secs(5)).await;
    assert!(is_let_in(&world, &bearer(1)).await);
    assert_eq!(reads(&world), 2);
}

#[tokio::test(start_paused = true)]
async fn a_busy_credential_is_looked_up_by_one_of_its_requests() {
    let world = setup().start().await;
    assert!(is_let_in(&world, &bearer(1)).await);
    pass(millis(3_990)).await;
    assert!(is_let_in(&world, &bearer(1)).await);
    assert_eq!(reads(&world), 1);
    pass(millis(10)).await;
    let wallets = world.store.hold_wallets();
    let engine = std::sync::Arc::clone(&world.engine);
    let mut asked = tokio::task::JoinSet::new();
    asked.spawn(async move { engine.authenticate(&bearer(1).expose(), PEER).await.is_ok() });
    wallets.reached().await;
    assert!(is_let_in(&world, &bearer(1)).await, "the others do not wait for it");
    assert_eq!(reads(&world), 2);
    wallets.open();
    assert!(asked.join_next().await.unwrap().unwrap());
    pass(millis(3_990)).await;
    assert!(is_let_in(&world, &bearer(1)).await, "believed anew");
    assert_eq!(reads(&world), 2);
}

#[tokio::test(start_paused = true)]
async fn a_forgery_does_not_keep_a_credential_from_being_looked_up_anew() {
    let world = setup().start().await;
    let forged = Bearer { secret: CredentialSecret::new([9; 32]), ..bearer(1) };
    assert!(is_let_in(&world, &bearer(1)).await);
    pass(secs(4)).await;
    assert!(!is_let_in(&world, &forged).await);
    assert_eq!(reads(&world), 1);
    assert!(is_let_in(&world, &bearer(1)).await);
    assert_eq!(reads(&world), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_looked_up_early_and_is_revoked_is_forgotten() {
    let world = setup().start().await;
    assert!(is_let_in(&world, &bearer(1)).await);
    world.store.journal.revoke(sample::API_KEY).await.unwrap();
    pass(secs(4)).await;
    assert!(!is_let_in(&world, &bearer(1)).await, "it was looked up");
    assert!(!is_let_in(&world, &bearer(1)).await, "and is not believed since");
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_believed_to_the_end_where_the_store_cannot_be_read() {
    let world = setup().start().await;
    assert!(is_let_in(&world, &bearer(1)).await);
    world.store.set_down(true);
    pass(secs(4)).await;
    assert!(is_let_in(&world, &bearer(1)).await);
    assert!(is_let_in(&world, &bearer(1)).await);
    assert_eq!(reads(&world), 2, "one of them tried");
    world.store.set_down(false);
    pass(millis(250)).await;
    assert!(is_let_in(&world, &bearer(1)).await);
    assert_eq!(reads(&world), 3, "and another one after a moment");
    world.store.set_down(true);
    pass(secs(5)).await;
    let told = world.engine.authenticate(&bearer(1).expose(), PEER).await;
    assert!(matches!(told, Err(AuthError::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_is_turned_away_within_five_seconds() {
    let world = setup().start().await;
    assert!(is_let_in(&world, &bearer(1)).await);
    world.store.journal.revoke(sample::API_KEY).await.unwrap();
    pass(secs(5)).await;
    assert!(!is_let_in(&world, &bearer(1)).await);
    assert!(is_let_in(&world, &bearer(2)).await, "the other API key is in force");
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_stays_turned_away_when_the_clock_is_set_back() {
    let world = setup().start().await;
    let journal = &world.store.journal;
    let before = journal.now();
    journal.advance(secs(3_600));
    let since = journal.revoke(sample::API_KEY).await.unwrap().at;
    journal.set_now(before);
    assert!(journal.now() < since);
    assert!(!is_let_in(&world, &bearer(1)).await);
    assert!(is_let_in(&world, &bearer(2)).await, "the other API key is in force");
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_remembered_from_before_it_was_read() {
    let world = setup().start().await;
    let wallets = world.store.hold_wallets();
    let engine = std::sync::Arc::clone(&world.engine);
    let mut asked = tokio::task::JoinSet::new();
    asked.spawn(async move { engine.authenticate(&bearer(1).expose(), PEER).await.is_ok() });
    wallets.reached().await;
    world.store.journal.revoke(sample::API_KEY).await.unwrap();
    pass(secs(4)).await;
    wallets.open();
    assert!(asked.join_next().await.unwrap().unwrap());
    pass(secs(1)).await;
    assert!(!is_let_in(&world, &bearer(1)).await, "five seconds after the revocation");
}

#[tokio::test(start_paused = true)]
async fn that_a_credential_is_unknown_is_remembered_for_a_moment() {
    let world = setup().start().await;
    assert!(!is_let_in(&world, &bearer(3)).await);
    // Nobody can have asked for it before it was there, but for a test.
    world.store.add_credential(credential(3, sample::API_KEY, &secret(7)));
    world.store.add_credential(credential(4, sample::API_KEY, &secret(7)));
    assert!(is_let_in(&world, &bearer(4)).await, "a new one works at once");
    pass(millis(990)).await;
    assert!(!is_let_in(&world, &bearer(3)).await);
    assert_eq!(reads(&world), 2, "it was not looked for again");
    pass(millis(1_010)).await;
    assert!(is_let_in(&world, &bearer(3)).await);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_secret_is_turned_away_whether_the_credential_is_remembered_or_not() {
    let world = setup().start().await;
    let forged = Bearer { secret: CredentialSecret::new([9; 32]), ..bearer(1) };
    assert!(!is_let_in(&world, &forged).await);
    assert!(is_let_in(&world, &bearer(1)).await);
    assert!(!is_let_in(&world, &forged).await);
    assert!(is_let_in(&world, &bearer(1)).await, "a forgery does not shut its bearer out");
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_no_bearer_is_turned_away_without_a_look() {
    let world = setup().start().await;
    for text in ["", "sk-123", "hfk_", "hfk_1_2"] {
        let told = world.engine.authenticate(text, PEER).await;
        assert!(matches!(told, Err(AuthError::Invalid)), "{text}");
    }
    assert_eq!(reads(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn a_credential_past_its_end_is_turned_away() {
    let world = setup().start().await;
    let mut ended = credential(3, sample::API_KEY, &secret(7));
    ended.ends_at = Some(Timestamp::from_micros(sample::NOW.as_micros()));
    world.store.add_credential(ended);
    assert!(!is_let_in(&world, &bearer(3)).await);
    let mut ending = credential(4, sample::API_KEY, &secret(7));
    ending.ends_at = Some(sample::NOW.after(secs(60)));
    world.store.add_credential(ending);
    assert!(is_let_in(&world, &bearer(4)).await);
    pass(secs(60)).await;
    assert!(!is_let_in(&world, &bearer(4)).await);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_known_is_met_to_the_moment() {
    let world = setup().start().await;
    let mut ending = credential(3, sample::API_KEY, &secret(7));
    ending.ends_at = Some(sample::NOW.after(secs(3)));
    world.store.add_credential(ending);
    let id: ApiKeyId = sample::fresh();
    let grant = Grant { ends_at: Some(sample::NOW.after(secs(4))), ..Grant::default() };
    let key = NewApiKey {
        id,
        wallet: sample::WALLET,
        name: "ending".to_owned(),
        external_id: None,
        grant,
    };
    world.store.journal.issue(&key, &credential(4, id, &secret(7))).await.unwrap();
    assert!(is_let_in(&world, &bearer(3)).await, "remembered for five seconds from now");
    assert!(is_let_in(&world, &bearer(4)).await);
    pass(millis(2_990)).await;
    assert!(is_let_in(&world, &bearer(3)).await);
    pass(millis(10)).await;
    assert!(!is_let_in(&world, &bearer(3)).await, "its own end");
    pass(millis(990)).await;
    assert!(is_let_in(&world, &bearer(4)).await);
    pass(millis(10)).await;
    assert!(!is_let_in(&world, &bearer(4)).await, "its API key's end");
    assert_eq!(reads(&world), 2, "nobody had to ask the store for it");
}

#[tokio::test(start_paused = true)]
async fn a_credential_of_an_older_server_secret_is_let_in_while_that_is_listed() {
    let world = setup().start().await;
    let rotated = setup()
        .on(&world.store)
        .shared("b")
        .secrets(Secrets::new(secret(8), vec![secret(7)]))
        .start()
        .await;
    assert!(is_let_in(&rotated, &bearer(1)).await);
    let gone = setup().on(&world.store).shared("c").secrets(Secrets::new(secret(8), vec![]));
    assert!(!is_let_in(&gone.start().await, &bearer(1)).await);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_turned_away_for_a_store_that_cannot_be_read() {
    let world = setup().start().await;
    turns().await;
    world.store.set_down(true);
    let told = world.engine.authenticate(&bearer(1).expose(), PEER).await;
    assert!(matches!(told, Err(AuthError::Unavailable(_))));
}

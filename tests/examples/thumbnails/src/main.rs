//! Sells thumbnails at a fifth of a cent: one key, one thumbnail, one charge. `cargo run -- DATABASE_URL`
//! keeps them in SQLite or PostgreSQL.

use std::{env, error::Error, sync::Arc, time::Duration};

use holdfast_domain::conduct::{ClaimError, ClaimOffer, ClaimOutcome, Conduct, Ending, Rebinding};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::limits::Limits;
use holdfast_domain::model::{FingerprintTerms, PublicModelId};
use holdfast_domain::operation::{
    Binding, Change, Claim, Lease, Node, OWN_RESULT_FORMAT, Owner, SealedResult,
};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode};
use holdfast_domain::price::{PriceVersion, PriceVersionId, UnitPrices};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::usage::{
    MeterKind, MeterReading, Meters, MetersSource::Estimated as Own, UsageReasons,
};
use holdfast_domain::{
    ApiKeyId, CredentialId, Currency, Journal, Micros, Nodes, RequestKey, Timestamp, WalletId,
    Wallets,
};
use holdfast_store::{DatabaseUrl, Options, ServeLock, Store, migrate};
use uuid::Uuid;

/// What one request asks for: who pays, for what, and at most how much.
fn claim(wallet: WalletId, key: RequestKey, picture: &str, lease: &Lease) -> Option<Claim> {
    let api_key = ApiKeyId::from_bytes(wallet.to_bytes()); // here a customer has one of each
    let secret = ServerSecret::new(b"the same at every start, and not in the source")?;
    let terms =
        FingerprintTerms { server_secret: secret.id(), fingerprint_version: 1, contract: 1 };
    // The same picture is the same request, however it is spelled; equal bytes are it without a look.
    let fingerprint = secret.fingerprint_key(api_key).digest(picture.trim().as_bytes());
    let body_digest = secret.body_digest_key(api_key).digest(picture.as_bytes());
    let model = PublicModelId::try_from("shop/thumbnail").ok()?;
    let id = PriceVersionId::new(&model, Currency::USD, "2026-11-01T00:00:00Z");
    let rates = UnitPrices::from_fn(|kind| if kind == MeterKind::Request { 2_000 } else { 0 })?;
    Some(Claim {
        api_key,
        request_key: key,
        wallet,
        binding: Binding { terms, fingerprint, body_digest },
        model,
        alias: None,
        price: PriceVersion { id, currency: Currency::USD, tariff: rates.into() },
        hold: rates.cost(&Meters::text(0, 0)?),
        tokens: 0,
        limits: Limits::default(),
        limits_revision: None,
        time: Duration::from_secs(60),
        owner: Owner { claim: Uuid::new_v4().into(), node: lease.node.clone() },
        lease: lease.clone(),
    })
}

async fn sell(store: &Store, now: Timestamp, claim: &Claim) -> Result<ClaimOutcome, ClaimError> {
    let pause = |attempt: u32| tokio::time::sleep(Duration::from_millis(50) * attempt.min(40));
    let conduct = Conduct { journal: store, pause: &pause, orphan_grace: None };
    let order = ClaimOffer { claim, now, rebind: &|_older_terms| Rebinding::Lost };
    let work = async |_operation| {
        // One thing, and no tokens.
        let metered = MeterReading {
            meters: Meters::estimated(0, 0),
            source: Own,
            reasons: UsageReasons::NONE,
            provider_cost: None,
        };
        // What nobody else may read is sealed here, under `CredentialSecret::result_key`.
        let (credential, sealed) = (CredentialId::from_u128(0), Arc::from(*b"a small picture"));
        let format = OWN_RESULT_FORMAT; // a layout of this service
        let result = SealedResult { credential, format, nonce: [0; 12], sealed, withheld: 0 };
        (Ending::Finished { metered, result }, Vec::new())
    };
    conduct.perform(&order, work).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = DatabaseUrl::parse(&env::args().nth(1).ok_or("name a database: sqlite://shop.db")?)?;
    migrate::up(&url).await?;
    let lock = Some(Arc::new(ServeLock::take(&url)?));
    let store = Store::open(Options { lock, ..Options::new(url) }).await?;
    // A customer with ten dollars.
    let wallet = WalletId::from(Uuid::new_v4());
    store.create(wallet, &format!("customer {wallet}"), Currency::USD).await?;
    let (id, kind, amount) = (Uuid::new_v4().into(), PostingKind::Deposit, "10.00".parse()?);
    store.commit(Arc::new(Change::Posting(Posting { id, wallet, kind, amount }))).await?;
    // This process. One that serves for longer than its lease renews it with `LeaseMode::Renew`.
    let node = Node { name: "shop-1".try_into()?, incarnation: Uuid::new_v4().into() };
    let beat = store.heartbeat(&node, Duration::from_secs(15), LeaseMode::TakeExpired).await?;
    let HeartbeatOutcome::Held { lease, now } = beat else {
        return Err("shop-1 runs already".into());
    };

    let key: RequestKey = Uuid::new_v4().to_string().parse()?;
    // Sold, told again from what is kept, and refused: the key is bound to another picture.
    for (picture, moved) in [("cat.png", Some(true)), ("cat.png", Some(false)), ("dog.png", None)] {
        let claim = claim(wallet, key, picture, &lease).ok_or("a bad constant")?;
        let claimed = sell(&store, now, &claim).await?;
        assert_eq!(matches!(claimed, ClaimOutcome::OtherRequest), moved.is_none());
        assert_eq!(
            if let ClaimOutcome::Ended(it) = claimed { Some(it.moved) } else { None },
            moved
        );
    }
    assert_eq!(store.find(wallet).await?.map(|it| it.available), Some(Micros::new(9_998_000)));
    store.leave(&node).await?;
    Ok(store.close().await?)
}

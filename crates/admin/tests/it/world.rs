//! A database with the API over it, keys of every role, and requests that vary one thing.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_accounts::Request as AccountRequest;
use holdfast_accounts::{Accounts, NewAdminKey, Principal};
use holdfast_admin::{AdminApi, AdminOptions};
use holdfast_domain::admin::offer::{ModelOffer, Offers, RouteHealth, RouteOffer};
use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::model::{Contract, PublicModelId};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{AdminKeyId, CommandKey, WalletId};
use holdfast_store::{DatabaseUrl, Options, Store, migrate};
use holdfast_testkit::{NoPause, sample};
use http::{HeaderMap, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

/// A request key of its own.
pub(crate) fn key() -> String {
    Uuid::new_v4().to_string()
}

/// Models without a route.
#[derive(Debug)]
struct OffersOf(&'static [&'static str]);

impl Offers for OffersOf {
    fn models(&self) -> Vec<ModelOffer> {
        let offer = |id: &&str| {
            let model = PublicModelId::try_from(*id).unwrap();
            ModelOffer { contract: Contract::new(model, 1, 8_192, 1_024), routes: Vec::new() }
        };
        self.0.iter().map(offer).collect()
    }
}

/// One model with a route that cools down.
#[derive(Debug)]
struct SampleOffers;

impl Offers for SampleOffers {
    fn models(&self) -> Vec<ModelOffer> {
        let route = RouteOffer {
            name: "upstream/large".to_owned(),
            priority: 0,
            weight: 1,
            concurrency: None,
            in_flight: 2,
            health: RouteHealth::LastResort,
            cost: None,
            cools_for: Some(Duration::from_millis(1_500)),
        };
        let contract = Contract::new(sample::model(), 3, 8_192, 1_024);
        vec![ModelOffer { contract, routes: vec![route] }]
    }
}

pub(crate) struct World {
    pub(crate) api: AdminApi,
    pub(crate) store: Store,
    pub(crate) accounts: Accounts,
    /// Text of an owner's key.
    pub(crate) owner: String,
    _folder: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/holdfast.db", folder.path().display());
        let url = DatabaseUrl::parse(&url).unwrap();
        migrate::up(&url).await.unwrap();
        let store = Store::open(Options::new(url)).await.unwrap();
        let secrets = vec![ServerSecret::new(&[7; 32]).unwrap()];
        let accounts = Accounts::new(Arc::new(store.clone()), secrets, Arc::new(NoPause))
            .serving(Arc::new(SampleOffers));
        // Nothing listens: it is the port that requests name in `Host`.
        let listens = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081));
        let options = AdminOptions::new(listens, None).unwrap();
        let api = AdminApi::new(accounts.clone(), options);
        let mut world = Self { api, store, accounts, owner: String::new(), _folder: folder };
        (_, world.owner) = world.admin_key(Role::Owner, Reach::All).await;
        world
    }

    /// The same database under other use cases.
    pub(crate) fn over(self, accounts: Accounts) -> Self {
        let listens = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081));
        let options = AdminOptions::new(listens, None).unwrap();
        Self { api: AdminApi::new(accounts.clone(), options), accounts, ..self }
    }

    /// The same database in a process that serves these models.
    pub(crate) async fn offering(models: &'static [&'static str]) -> Self {
        Self::new().await.serving(models)
    }

    /// The same with these models alone.
    pub(crate) fn serving(self, models: &'static [&'static str]) -> Self {
        let accounts = self.accounts.clone().serving(Arc::new(OffersOf(models)));
        self.over(accounts)
    }

    /// A key of a role, with the text that its holder sends.
    pub(crate) async fn admin_key(&self, role: Role, reach: Reach) -> (AdminKeyId, String) {
        let new = NewAdminKey {
            name: format!("{role}-{}", &key()[..8]).parse().unwrap(),
            role,
            reach,
            ends_at: None,
        };
        let request = AccountRequest::new(CommandKey::from(Uuid::new_v4()), &[b"test"], None);
        let local = Principal::local();
        let issued = self.accounts.issue_admin_key(&local, &request, &new);
        let issued = issued.await.unwrap().thing;
        (issued.id, issued.bearer.unwrap().expose())
    }

    pub(crate) async fn send(&self, ask: Call) -> Reply {
        let mut request = Request::builder().method(ask.method).uri(&ask.path);
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::from(ask.body.unwrap_or_default()))).unwrap();
        let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        let answer = self.api.answer(request, client).await;
        let (head, body) = answer.into_parts();
        let body = body.collected().await.unwrap();
        Reply { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// Asks for a path as the owner.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Call::get(path).bearer(&self.owner)).await
    }

    /// Posts a change as the owner, under a key of its own.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(Call::post(path, &body).bearer(&self.owner)).await
    }

    /// A new wallet, with this much on it.
    pub(crate) async fn wallet(&self, name: &str, micros: i64) -> String {
        let made = self.post("/wallets", json!({ "name": name, "currency": "USD" })).await;
        assert_eq!(made.status, 201, "{made:?}");
        let id = made.json()["id"].as_str().unwrap().to_owned();
        if micros > 0 {
            let deposited = self.post("/deposits", deposit(&id, micros)).await;
            assert_eq!(deposited.status, 201, "{deposited:?}");
        }
        id
    }

    /// A new API key of a wallet.
    pub(crate) async fn api_key(&self, wallet: &str) -> String {
        let body = json!({ "wallet_id": wallet, "reason": "a customer's wish" });
        let issued = self.post("/api_keys", body).await;
        assert_eq!(issued.status, 201, "{issued:?}");
        issued.json()["id"].as_str().unwrap().to_owned()
    }
}

/// A deposit with a reference of its own.
pub(crate) fn deposit(wallet: &str, micros: i64) -> Value {
    json!({
        "wallet_id": wallet, "amount_micros": micros, "source": "test", "external_reference": key(),
    })
}

/// Reach of one wallet.
pub(crate) fn reach(wallet: &str) -> Reach {
    Reach::Wallet(wallet.parse::<WalletId>().unwrap())
}

/// A request below `/admin/v1`.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    method: &'static str,
    path: String,
    headers: BTreeMap<&'static str, String>,
    body: Option<Vec<u8>>,
}

impl Call {
    pub(crate) fn get(path: &str) -> Self {
        let headers = BTreeMap::from([("host", "localhost:8081".to_owned())]);
        Self { method: "GET", path: format!("/admin/v1{path}"), headers, body: None }
    }

    pub(crate) fn post(path: &str, body: &Value) -> Self {
        Self { method: "POST", ..Self::get(path) }
            .header("idempotency-key", &key())
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    pub(crate) fn method(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    /// Another path, from the root.
    pub(crate) fn path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    pub(crate) fn bearer(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.to_owned());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    pub(crate) fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: Some(body.into()), ..self }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Checks that it is this error, in the envelope.
    #[track_caller]
    pub(crate) fn is_error(&self, status: u16, code: &str) -> &Self {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{self:?}");
        let error = &self.json()["error"];
        for member in ["message", "type", "param", "code"] {
            assert!(error.get(member).is_some(), "{member} in {error}");
        }
        assert!(self.header("x-should-retry").is_some());
        self
    }

    /// Checks that it is this error about this member.
    #[track_caller]
    pub(crate) fn is_about(&self, status: u16, code: &str, param: &str) {
        self.is_error(status, code);
        assert_eq!(self.json()["error"]["param"], param, "{self:?}");
    }
}

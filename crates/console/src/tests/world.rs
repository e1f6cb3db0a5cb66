//! A database with the console over it, visitors of every role, and pages as a browser gets them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use holdfast_accounts::{
    Accounts, KeyOrder, NewWallet, PostingOrder, Principal, Reference, Request,
};
use holdfast_domain::admin::Administration;
use holdfast_domain::admin::offer::{ModelOffer, Offers, RouteHealth, RouteOffer};
use holdfast_domain::admin::{Authority, PostingDetails, Reach, Role, WalletPatch, WalletRecord};
use holdfast_domain::conduct::{Conduct, Ending};
use holdfast_domain::credential::{ApiKey, Grant};
use holdfast_domain::model::Contract;
use holdfast_domain::operation::{Claim, Lease};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{
    ApiKeyId, CommandKey, Currency, Journal, Micros, Nodes, Operation, OperationId, PersonId,
    Prices, WalletId,
};
use holdfast_store::{DatabaseUrl, Options, Store, migrate};
use holdfast_testkit::{NoPause, sample};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use tempfile::TempDir;
use tower::ServiceExt;
use uuid::Uuid;

use crate::console::pages;
use crate::kit::{ConsoleState, Visitor};
use crate::tests::columns::actions_stand_on_every_screen;
use crate::tests::site::shared;

/// One model with a route, whose name no holder may see.
#[derive(Debug)]
struct SampleOffers;

/// Name of the route.
pub(crate) const ROUTE: &str = "upstream/large";

impl Offers for SampleOffers {
    fn models(&self) -> Vec<ModelOffer> {
        let route = RouteOffer {
            name: ROUTE.to_owned(),
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

/// The console over a database of its own.
pub(crate) struct World {
    pub(crate) accounts: Accounts,
    pub(crate) store: Store,
    /// Somebody who may do everything.
    pub(crate) owner: Visitor,
    /// Parts that the handlers have at hand.
    pub(crate) shared: ConsoleState,
    router: Router,
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
        let shared = shared(&accounts);
        let router = pages(shared.clone());
        let owner = visitor(Role::Owner, Reach::All);
        Self { accounts, store, owner, shared, router, _folder: folder }
    }

    /// A new wallet, with this much on it.
    pub(crate) async fn wallet(&self, name: &str, micros: i64) -> WalletRecord {
        let new = NewWallet {
            name: name.parse().unwrap(),
            currency: Currency::USD,
            settings: WalletPatch::default(),
        };
        let local = Principal::local();
        let made = self.accounts.create_wallet(&local, &request(), &new).await.unwrap().thing;
        if micros > 0 {
            let details = PostingDetails::default();
            let order = PostingOrder { amount: Micros::new(micros), currency: None, details };
            let id = reference(made.wallet.id);
            self.accounts.deposit(&local, &request(), &id, order).await.unwrap();
        }
        self.record(made.wallet.id).await
    }

    /// A wallet as it stands.
    pub(crate) async fn record(&self, id: WalletId) -> WalletRecord {
        self.accounts.wallet(&Principal::local(), &reference(id)).await.unwrap()
    }

    /// What is available of a wallet, in micros.
    pub(crate) async fn available(&self, id: WalletId) -> i64 {
        self.record(id).await.wallet.available.get()
    }

    /// A new API key of a wallet.
    pub(crate) async fn api_key(&self, wallet: WalletId, name: &str) -> ApiKey {
        let name = Some(name.parse().unwrap());
        let order = KeyOrder { name, external_id: None, grant: Grant::default() };
        let (local, id) = (Principal::local(), reference(wallet));
        let issued = self.accounts.issue_api_keys(&local, &request(), &id, &[order]).await.unwrap();
        issued.thing[0].api_key.clone()
    }

    /// An API key as it stands.
    pub(crate) async fn key(&self, id: ApiKeyId) -> ApiKey {
        let id = Reference::Id(Uuid::from_bytes(id.to_bytes()));
        self.accounts.api_key(&Principal::local(), &id, None).await.unwrap().api_key
    }

    /// An operation that runs, and holds 100 micros.
    pub(crate) async fn running(&self, key: &ApiKey) -> OperationId {
        let claim = self.claim(key).await;
        let conduct = Conduct { journal: &self.store, pause: &NoPause, orphan_grace: None };
        conduct.claim(&sample::order(&claim)).await.unwrap();
        OperationId::of(claim.api_key, claim.request_key)
    }

    /// An operation that was answered and charged, for a prompt of so many tokens.
    pub(crate) async fn completed(&self, key: &ApiKey, prompt: u64) -> Operation {
        let claim = self.claim(key).await;
        let conduct = Conduct { journal: &self.store, pause: &NoPause, orphan_grace: None };
        let run = async |_operation: Arc<Operation>| {
            let (metered, result) = (sample::metered(prompt, 10), sample::result("sealed"));
            (Ending::Finished { metered, result }, Vec::new())
        };
        conduct.perform(&sample::order(&claim), run).await.unwrap();
        let id = OperationId::of(claim.api_key, claim.request_key);
        self.store.load(id).await.unwrap().operation.unwrap()
    }

    async fn claim(&self, key: &ApiKey) -> Claim {
        self.store.pin(&[sample::price()]).await.unwrap();
        sample::claim()
            .wallet(key.wallet)
            .api_key(key.id)
            .request_key(sample::fresh_request_key())
            .limits(key.grant.limits)
            .lease(self.lease().await)
            .build()
    }

    /// A live node.
    async fn lease(&self) -> Lease {
        let node = sample::node("a");
        let beat = self.store.heartbeat(&node, sample::LEASE, LeaseMode::Take).await.unwrap();
        let HeartbeatOutcome::Held { lease, .. } = beat else { panic!("{beat:?}") };
        lease
    }

    /// Number of the last row of the audit log: each change adds one.
    pub(crate) async fn changes(&self) -> u64 {
        self.store.trail_head().await.unwrap().seq
    }

    pub(crate) async fn get(&self, visitor: &Visitor, path: &str) -> Reply {
        let reply = self.answer(visitor, (Method::GET, path), Body::empty()).await;
        actions_stand_on_every_screen(&reply.body);
        reply
    }

    /// Opens a form: its address with the request key that it was given.
    pub(crate) async fn open(&self, visitor: &Visitor, path: &str) -> String {
        let reply = self.get(visitor, path).await;
        assert_eq!(reply.status, StatusCode::SEE_OTHER, "{path}: {}", reply.body);
        reply.location().to_owned()
    }

    /// Sends a form as a browser does.
    pub(crate) async fn send(
        &self,
        visitor: &Visitor,
        address: &str,
        fields: &[(&str, &str)],
    ) -> Reply {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        self.answer(visitor, (Method::POST, address), Body::from(body.finish())).await
    }

    /// Sends a form that was reviewed.
    pub(crate) async fn confirm(
        &self,
        visitor: &Visitor,
        address: &str,
        fields: &[(&str, &str)],
    ) -> Reply {
        let mut fields = fields.to_vec();
        fields.push(("confirm", "yes"));
        self.send(visitor, address, &fields).await
    }

    async fn answer(&self, visitor: &Visitor, (method, path): (Method, &str), body: Body) -> Reply {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let mut request = request.body(body).unwrap();
        request.extensions_mut().insert(visitor.clone());
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8(bytes.to_vec()).unwrap();
        Reply { status: head.status, headers: head.headers, body }
    }
}

/// Somebody who is signed in.
pub(crate) fn visitor(role: Role, reach: Reach) -> Visitor {
    let person = PersonId::from(Uuid::new_v4());
    let principal = Principal::of_person(person, Authority { role, reach }, None);
    Visitor { principal, email: format!("{role}@example.com") }
}

/// Somebody with this role: for all wallets, or as a holder for this one.
pub(crate) fn visitor_of(role: Role, wallet: WalletId) -> Visitor {
    let reach = if role.is_holder() { Reach::Wallet(wallet) } else { Reach::All };
    visitor(role, reach)
}

/// A request that nobody repeats.
pub(crate) fn request() -> Request {
    let reason = Some("a test".parse().unwrap());
    Request::new(CommandKey::from(Uuid::new_v4()), &[b"test"], reason)
}

pub(crate) fn reference(wallet: WalletId) -> Reference {
    Reference::Id(Uuid::from_bytes(wallet.to_bytes()))
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self
    }

    #[track_caller]
    pub(crate) fn has(&self, text: &str) -> &Self {
        assert!(self.body.contains(text), "{text} is not in {}", self.body);
        self
    }

    #[track_caller]
    pub(crate) fn has_not(&self, text: &str) -> &Self {
        assert!(!self.body.contains(text), "{text} is in {}", self.body);
        self
    }

    /// Page that it leads to, without the flash of its address.
    pub(crate) fn location(&self) -> &str {
        self.follows().split("?done=").next().unwrap()
    }

    /// The whole address that it leads to.
    pub(crate) fn follows(&self) -> &str {
        self.headers.get(LOCATION).unwrap().to_str().unwrap()
    }

    /// Texts of the cells of the table that has this title.
    pub(crate) fn rows(&self, title: &str) -> Vec<Vec<String>> {
        let caption = format!("<caption>{title}");
        let Some(at) = self.body.find(&caption) else { return Vec::new() };
        let table = self.body[at..].split("</table>").next().unwrap();
        let body = table.split_once("<tbody>").unwrap().1;
        let cells = |row: &str| row.split("</td>").map(text).collect::<Vec<_>>();
        let mut rows: Vec<_> = body.split("<tr>").skip(1).map(cells).collect();
        // Behind the last cell there is the end of the row.
        rows.iter_mut().for_each(|row| drop(row.pop()));
        rows
    }

    /// Addresses of all links within the console.
    pub(crate) fn links(&self) -> Vec<String> {
        let behind = self.body.split("<a ").skip(1);
        let address = |tag: &str| {
            let behind = tag.split_once("href=\"").unwrap().1;
            behind.split('"').next().unwrap().replace("&#38;", "&")
        };
        behind.map(address).filter(|address| !address.starts_with("http")).collect()
    }

    /// Address of the link with this text.
    pub(crate) fn link(&self, text: &str) -> Option<String> {
        let end = format!("\">{text}</a>");
        let (before, _) = self.body.split_once(&end)?;
        let address = before.rsplit_once("href=\"").unwrap().1;
        Some(address.replace("&#38;", "&"))
    }
}

/// A piece of a page without its markup.
fn text(html: &str) -> String {
    let mut pieces = html.split('<');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('>').map_or("", |(_, text)| text))
}

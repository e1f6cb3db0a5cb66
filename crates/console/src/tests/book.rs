//! A database with the pages over it, visitors of every role, and books of random operations.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use holdfast_accounts::Request as AccountRequest;
use holdfast_accounts::{Accounts, KeyOrder, NewWallet, PostingOrder, Principal, Reference};
use holdfast_domain::admin::offer::{ModelOffer, Offers, RouteHealth, RouteOffer};
use holdfast_domain::admin::{Authority, PostingDetails, Reach, Role, WalletPatch};
use holdfast_domain::conduct::{Conduct, Ending};
use holdfast_domain::credential::Grant;
use holdfast_domain::model::Contract;
use holdfast_domain::operation::Claim;
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode};
use holdfast_domain::price::{PriceVersion, ProviderCost};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{
    ApiKeyId, CommandKey, Currency, Journal, Micros, Nodes, Operation, OperationId, PersonId,
    Prices, WalletId,
};
use holdfast_store::{DatabaseUrl, Options, Store, migrate};
use holdfast_testkit::{Dice, NoPause, sample};
use http::Request;
use http_body_util::BodyExt;
use tempfile::TempDir;
use tower::ServiceExt;
use uuid::Uuid;

use crate::console::pages;
use crate::kit::Visitor;
use crate::tests::columns::actions_stand_on_every_screen;
use crate::tests::site::shared;

/// One model with a route that cools down.
#[derive(Debug)]
struct SampleOffers;

impl Offers for SampleOffers {
    fn models(&self) -> Vec<ModelOffer> {
        let route = RouteOffer {
            name: "upstream/large".to_owned(),
            priority: 0,
            weight: 1,
            concurrency: Some(8),
            in_flight: 2,
            health: RouteHealth::LastResort,
            cost: Some(Arc::new(ProviderCost {
                currency: Currency::USD,
                tariff: sample::price().tariff,
            })),
            cools_for: Some(Duration::from_millis(1_500)),
        };
        let contract = Contract::new(sample::model(), 3, 8_192, 1_024);
        vec![ModelOffer { contract, routes: vec![route] }]
    }
}

pub(crate) struct OpsWorld {
    pub(crate) store: Store,
    pub(crate) accounts: Accounts,
    router: Router,
    // After the store, whose connections it ends.
    _home: Home,
}

/// Place of the database, until it is dropped.
enum Home {
    File(#[expect(dead_code, reason = "the folder lasts as long as this")] TempDir),
    Server { url: String, name: String },
}

impl Home {
    fn on_a_file() -> (Self, String) {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/holdfast.db", folder.path().display());
        (Self::File(folder), url)
    }

    /// A database of its own on the server of the tests, which `cargo xtask test console` starts.
    fn on_a_server() -> (Self, String) {
        let url = super::server();
        let name = format!("console_{}", Uuid::new_v4().simple());
        let home = Self::Server { url, name };
        home.run("postgres", &format!("CREATE DATABASE {}", home.name()));
        let own = home.url_of(home.name());
        (home, own)
    }

    fn name(&self) -> &str {
        let Self::Server { name, .. } = self else { panic!("a file has no name") };
        name
    }

    fn url_of(&self, database: &str) -> String {
        let Self::Server { url, .. } = self else { panic!("a file has one URL") };
        match url.split_once('?') {
            Some((address, parameters)) => format!("{address}/{database}?{parameters}"),
            None => format!("{url}/{database}"),
        }
    }

    fn run(&self, database: &str, sql: &str) {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--command", sql]);
        let ran = psql.args(["--dbname", &self.url_of(database)]).output().unwrap();
        assert!(ran.status.success() || std::thread::panicking(), "{ran:?}");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Self::Server { name, .. } = &*self {
            self.run("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    pub(crate) html: String,
}

impl Reply {
    /// Page that it leads to, without the flash of its address.
    pub(crate) fn page(&self) -> Option<&str> {
        self.location.as_deref()?.split("?done=").next()
    }
}

/// A request of its own.
pub(crate) fn request() -> AccountRequest {
    AccountRequest::new(CommandKey::from(Uuid::new_v4()), &[b"test"], "a test".parse().ok())
}

pub(crate) fn visitor(role: Role, reach: Reach) -> Visitor {
    let person = PersonId::from(Uuid::new_v4());
    let principal = Principal::of_person(person, Authority { role, reach }, None);
    Visitor { principal, email: "a.visitor@example.com".to_owned() }
}

/// Whoever may do everything.
pub(crate) fn owner() -> Visitor {
    visitor(Role::Owner, Reach::All)
}

impl OpsWorld {
    pub(crate) async fn new() -> Self {
        Self::at(Home::on_a_file()).await
    }

    pub(crate) async fn on_a_server() -> Self {
        Self::at(Home::on_a_server()).await
    }

    async fn at((home, url): (Home, String)) -> Self {
        let url = DatabaseUrl::parse(&url).unwrap();
        migrate::up(&url).await.unwrap();
        let store = Store::open(Options::new(url)).await.unwrap();
        let secrets = vec![ServerSecret::new(&[7; 32]).unwrap()];
        let accounts = Accounts::new(Arc::new(store.clone()), secrets, Arc::new(NoPause))
            .serving(Arc::new(SampleOffers));
        let router = pages(shared(&accounts));
        Self { store, accounts, router, _home: home }
    }

    pub(crate) async fn get(&self, visitor: &Visitor, path: &str) -> Reply {
        let request = Request::builder().uri(path).extension(visitor.clone());
        let reply = self.answer(request.body(Body::empty()).unwrap()).await;
        actions_stand_on_every_screen(&reply.html);
        reply
    }

    /// Gets a page that must be there.
    pub(crate) async fn page(&self, visitor: &Visitor, path: &str) -> String {
        let reply = self.get(visitor, path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.html);
        reply.html
    }

    pub(crate) async fn post(
        &self,
        visitor: &Visitor,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Reply {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        let request = Request::builder()
            .method("POST")
            .uri(path)
            .header("content-type", "application/x-www-form-urlencoded")
            .extension(visitor.clone());
        self.answer(request.body(Body::from(form.finish())).unwrap()).await
    }

    async fn answer(&self, request: Request<Body>) -> Reply {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let location = head.headers.get("location");
        Reply {
            status: head.status.as_u16(),
            location: location.map(|value| value.to_str().unwrap().to_owned()),
            html: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn wallet(&self, name: &str, micros: i64) -> WalletId {
        let new = NewWallet {
            name: name.parse().unwrap(),
            currency: Currency::USD,
            settings: WalletPatch {
                low_balance: Some(Some(Micros::new(1_000))),
                ..WalletPatch::default()
            },
        };
        let local = Principal::local();
        let made = self.accounts.create_wallet(&local, &request(), &new).await.unwrap();
        let id = made.thing.wallet.id;
        if micros > 0 {
            let details = PostingDetails::default();
            let order = PostingOrder { amount: Micros::new(micros), currency: None, details };
            let wallet = Reference::Id(Uuid::from_bytes(id.to_bytes()));
            self.accounts.deposit(&local, &request(), &wallet, order).await.unwrap();
        }
        id
    }

    pub(crate) async fn api_key(&self, wallet: WalletId, name: &str) -> ApiKeyId {
        let order = KeyOrder {
            name: Some(name.parse().unwrap()),
            external_id: None,
            grant: Grant::default(),
        };
        let wallet = Reference::Id(Uuid::from_bytes(wallet.to_bytes()));
        let local = Principal::local();
        let issued = self.accounts.issue_api_keys(&local, &request(), &wallet, &[order]).await;
        issued.unwrap().thing[0].api_key.id
    }

    /// A claim on a live node.
    async fn claim(&self, wallet: WalletId, api_key: ApiKeyId, price: &PriceVersion) -> Claim {
        self.store.pin(std::slice::from_ref(price)).await.unwrap();
        let node = sample::node("node-a");
        let beat = self.store.heartbeat(&node, sample::LEASE, LeaseMode::Take).await.unwrap();
        let HeartbeatOutcome::Held { lease, .. } = beat else { panic!("{beat:?}") };
        sample::claim()
            .wallet(wallet)
            .api_key(api_key)
            .request_key(sample::fresh_request_key())
            .price(price.clone())
            .lease(lease)
            .build()
    }

    /// An operation that runs.
    pub(crate) async fn running(&self, wallet: WalletId, api_key: ApiKeyId) -> OperationId {
        let claim = self.claim(wallet, api_key, &sample::price()).await;
        let conduct = Conduct { journal: &self.store, pause: &NoPause, orphan_grace: None };
        conduct.claim(&sample::order(&claim)).await.unwrap();
        OperationId::of(claim.api_key, claim.request_key)
    }

    /// An operation that ended so, at this price, after one attempt.
    pub(crate) async fn ended(
        &self,
        (wallet, api_key): (WalletId, ApiKeyId),
        price: &PriceVersion,
        ending: Ending,
    ) -> Operation {
        let claim = self.claim(wallet, api_key, price).await;
        let conduct = Conduct { journal: &self.store, pause: &NoPause, orphan_grace: None };
        let run = async move |_operation: Arc<Operation>| (ending, sample::attempts().to_vec());
        conduct.perform(&sample::order(&claim), run).await.unwrap();
        self.operation(OperationId::of(claim.api_key, claim.request_key)).await
    }

    pub(crate) async fn operation(&self, id: OperationId) -> Operation {
        self.store.load(id).await.unwrap().operation.unwrap()
    }
}

/// A book of operations that a number repeats.
pub(crate) struct Book {
    pub(crate) wallets: Vec<WalletId>,
    pub(crate) api_keys: Vec<ApiKeyId>,
    pub(crate) operations: Vec<Operation>,
}

/// Makes a book of so many operations over two wallets: settled at several prices, refused, given up, or running.
pub(crate) async fn book(world: &OpsWorld, seed: u64, count: usize, keys: usize) -> Book {
    let mut dice = Dice::new(seed);
    let mut book = Book { wallets: Vec::new(), api_keys: Vec::new(), operations: Vec::new() };
    for name in ["acme", "globex"] {
        book.wallets.push(world.wallet(name, 9_000_000).await);
    }
    let mut owners = Vec::new();
    for number in 0..keys {
        let wallet = book.wallets[number % 2];
        let api_key = world.api_key(wallet, &format!("key-{number}")).await;
        book.api_keys.push(api_key);
        owners.push((wallet, api_key));
    }
    let prices = [
        sample::price(),
        sample::priced("2026-02-01T00:00:00Z", 333_333),
        sample::tiered("2026-03-01T00:00:00Z", 1_234_567),
    ];
    for number in 0..count {
        let owner = owners[number % owners.len()];
        let price = &prices[usize::try_from(dice.roll(3)).unwrap()];
        let operation = match dice.roll(8) {
            0 => {
                let id = world.running(owner.0, owner.1).await;
                world.operation(id).await
            }
            1 => world.ended(owner, price, sample::refused()).await,
            2 => world.ended(owner, price, Ending::Unknown).await,
            3 => world.ended(owner, price, Ending::NotRun).await,
            _settled => {
                let ending = sample::finished(dice.roll(90), dice.roll(40));
                world.ended(owner, price, ending).await
            }
        };
        book.operations.push(operation);
    }
    book
}

/// A text without its tags.
pub(crate) fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => is_tag = true,
            '>' => is_tag = false,
            _ if !is_tag => text.push(letter),
            _ => {}
        }
    }
    text.trim().to_owned()
}

/// The value of a fact, where it stands.
pub(crate) fn fact(html: &str, name: &str) -> Option<String> {
    let (_, rest) = html.split_once(&format!("<dt>{name}</dt><dd>"))?;
    Some(plain(rest.split_once("</dd>")?.0))
}

/// The exact value of a tile: its title, or its text if the text has all of it.
pub(crate) fn tile(html: &str, label: &str) -> String {
    let (_, rest) = html.split_once(&format!("<dt>{label}</dt><dd>")).unwrap();
    let value = rest.split_once("</dd>").unwrap().0;
    let exact = value.split_once("title=\"").map(|(_, rest)| rest.split_once('"').unwrap().0);
    exact.map_or_else(|| plain(value), str::to_owned)
}

/// Rows of a part of the table of this title, by the names of their columns without their currency.
fn rows_of(html: &str, title: &str, part: &str) -> Vec<BTreeMap<String, String>> {
    let Some((_, rest)) = html.split_once(&format!("<caption>{title}")) else { return Vec::new() };
    let table = rest.split_once("</table>").unwrap().0;
    let cells = |row: &str, tag: &str| -> Vec<String> {
        let start = format!("<{tag}");
        let cells = row.split(&start).skip(1);
        cells.map(|cell| plain(&format!("<{cell}"))).collect()
    };
    let head = cells(table.split_once("</tr>").unwrap().0, "th ");
    let head: Vec<_> = head.iter().map(|name| name.trim_end_matches(", USD").to_owned()).collect();
    let Some((_, rest)) = table.split_once(&format!("<{part}>")) else { return Vec::new() };
    let body = rest.split_once(&format!("</{part}>")).unwrap().0;
    let rows = body.split("<tr>").skip(1);
    rows.map(|row| head.iter().cloned().zip(cells(row, "td")).collect()).collect()
}

/// The rows of the table of this title, by the names of their columns.
pub(crate) fn rows(html: &str, title: &str) -> Vec<BTreeMap<String, String>> {
    rows_of(html, title, "tbody")
}

/// The sums of the table of this title, by the names of their columns.
pub(crate) fn total(html: &str, title: &str) -> BTreeMap<String, String> {
    let [total] = rows_of(html, title, "tfoot").try_into().unwrap();
    total
}

/// The amounts of a list of a ranking or a legend, by their names.
pub(crate) fn amounts(html: &str, class: &str) -> Vec<(String, i64)> {
    let (_, rest) = html.split_once(&format!("class=\"{class}\"")).unwrap();
    let end = if class == "legend" { "</ul>" } else { "</ol>" };
    let items = rest.split_once(end).unwrap().0.split("<li>").skip(1);
    let item = |item: &str| {
        let (name, rest) = item.split_once("<span class=\"number\">").unwrap();
        (plain(name), amount(&plain(rest.split_once("</span>").unwrap().0)))
    };
    items.map(item).collect()
}

/// Address in this piece of a page.
pub(crate) fn address(html: &str) -> String {
    let (_, rest) = html.split_once("href=\"").unwrap_or_else(|| panic!("no link in {html}"));
    rest.split('"').next().unwrap().replace("&#38;", "&")
}

/// Addresses that the rows of a table lead to by their first links.
pub(crate) fn behind_rows(html: &str, title: &str) -> Vec<String> {
    let (_, rest) = html.split_once(&format!("<caption>{title}")).unwrap();
    let body = rest.split_once("</tbody>").unwrap().0.split_once("<tbody>").unwrap().1;
    body.split("<tr>").skip(1).map(address).collect()
}

/// All pages of a list, from the first on.
pub(crate) async fn pages_of(world: &OpsWorld, first: &str) -> Vec<String> {
    let (mut pages, mut path) = (Vec::new(), Some(first.to_owned()));
    while let Some(next) = path {
        let html = world.page(&owner(), &next).await;
        path = next_page(&html);
        pages.push(html);
        assert!(pages.len() < 50, "{next} leads on for ever");
    }
    pages
}

/// The amount of a text like `1,250.00 USD`.
pub(crate) fn amount(text: &str) -> i64 {
    let number = text.split(' ').next().unwrap().replace(',', "");
    number.parse::<Micros>().unwrap_or_else(|error| panic!("{text}: {error}")).get()
}

/// Address of the next page, where there is one.
pub(crate) fn next_page(html: &str) -> Option<String> {
    let (before, _) = html.split_once("\">Next page</a>")?;
    let address = before.rsplit_once("href=\"")?.1;
    Some(address.replace("&#38;", "&").replace("&amp;", "&"))
}

//! A database with the console over it, and requests that vary one thing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use holdfast_accounts::{Accounts, NewInvitation, Principal, Request as AccountRequest};
use holdfast_admin::AdminOptions;
use holdfast_domain::CommandKey;
use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::secret::{LinkToken, ServerSecret};
use holdfast_net::AdminUrl;
use holdfast_store::{DatabaseUrl, Options, Store, migrate};
use holdfast_testkit::NoPause;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use tempfile::TempDir;
use uuid::Uuid;

use holdfast_admin::AnswerBody;

use crate::audience::Audience;
use crate::console::Console;
use crate::kit::{Brand, ConsoleOptions, ConsoleState};
use crate::relay::ApiRelay;

pub(crate) const EMAIL: &str = "ada@example.com";
pub(crate) const PASSWORD: &str = "correct horse battery";

/// A public API that knows nothing.
#[derive(Debug)]
struct NoApi;

#[async_trait]
impl ApiRelay for NoApi {
    async fn ask(
        &self,
        _request: Request<Bytes>,
        _client: IpAddr,
    ) -> Result<Response<BoxStream<'static, Bytes>>, Unavailable> {
        Err(Unavailable("nobody is there".into()))
    }
}

/// Options of a console whose playground gets no answer.
pub(crate) fn options(address: AdminOptions, audience: Audience) -> ConsoleOptions {
    let base_url = "https://api.example.com/v1".to_owned();
    // Tests of pages share their machine with others, and need the page that waited.
    let patience = Duration::from_secs(10);
    ConsoleOptions {
        address,
        audience,
        base_url,
        playground: Some(Arc::new(NoApi)),
        patience,
        brand: Brand::default(),
    }
}

/// Options of the console that [`World::new`] has.
pub(crate) fn shared_options() -> ConsoleOptions {
    let listens = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081));
    options(AdminOptions::new(listens, None).unwrap(), Audience::Everyone)
}

/// The desk of pages that are asked for without a guard.
pub(crate) fn shared(accounts: &Accounts) -> ConsoleState {
    let address = AdminOptions::of_links(None, None);
    ConsoleState::new(accounts.clone(), options(address, Audience::Everyone))
}

/// The console over a database of its own.
pub(crate) struct World {
    pub(crate) accounts: Accounts,
    pub(crate) console: Console,
    _folder: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(None, Audience::Everyone).await
    }

    pub(crate) async fn with(url: Option<&str>, audience: Audience) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = format!("sqlite://{}/holdfast.db", folder.path().display());
        let database = DatabaseUrl::parse(&database).unwrap();
        migrate::up(&database).await.unwrap();
        let store = Store::open(Options::new(database)).await.unwrap();
        let secrets = vec![ServerSecret::new(&[7; 32]).unwrap()];
        let accounts = Accounts::new(Arc::new(store), secrets, Arc::new(NoPause));
        let listens = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081));
        let url = url.map(|url| AdminUrl::parse(url).unwrap());
        let address = AdminOptions::new(listens, url).unwrap();
        let console = Console::new(accounts.clone(), options(address, audience));
        Self { accounts, console, _folder: folder }
    }

    /// The same with somebody who is the owner.
    pub(crate) async fn owned() -> Self {
        let world = Self::new().await;
        let token = world.invite(EMAIL, Role::Owner, Reach::All).await;
        world.accounts.accept_link(&token, Some(&PASSWORD.parse().unwrap()), None).await.unwrap();
        world
    }

    pub(crate) async fn invite(&self, email: &str, role: Role, reach: Reach) -> LinkToken {
        let new = NewInvitation { email: email.parse().unwrap(), name: None, role, reach };
        let key = CommandKey::from(Uuid::new_v4());
        let request = AccountRequest::new(key, &[b"test"], None);
        let told = self.accounts.invite_person(&Principal::local(), &request, &new).await;
        told.unwrap().thing.link.unwrap()
    }

    pub(crate) async fn send(&self, call: Call) -> Reply {
        self.send_from(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), call).await
    }

    /// The same from this address of the network.
    pub(crate) async fn send_from(&self, from: IpAddr, call: Call) -> Reply {
        Self::answer_of(&self.console, from, call).await
    }

    /// An answer that may still be on its way.
    pub(crate) async fn ask(&self, call: Call) -> Response<AnswerBody> {
        Self::ask_of(&self.console, IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), call).await
    }

    async fn ask_of(console: &Console, from: IpAddr, call: Call) -> Response<AnswerBody> {
        let mut request = Request::builder().method(call.method).uri(&call.path);
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::from(call.body))).unwrap();
        console.answer(request, from).await
    }

    pub(crate) async fn answer_of(console: &Console, from: IpAddr, call: Call) -> Reply {
        let (head, body) = Self::ask_of(console, from, call).await.into_parts();
        let body = body.collected().await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        Reply { status: head.status.as_u16(), headers: head.headers, text }
    }

    pub(crate) async fn sign_in(&self, email: &str, password: &str) -> Reply {
        self.send(sign_in(email, password)).await
    }

    /// Signs the owner in: what their browser shows from then on.
    pub(crate) async fn cookies(&self) -> String {
        let reply = self.sign_in(EMAIL, PASSWORD).await;
        assert_eq!((reply.status, reply.header(LOCATION.as_str())), (303, Some("/")), "{reply:?}");
        reply.cookies()
    }
}

/// A sign-in, as a browser sends it.
pub(crate) fn sign_in(email: &str, password: &str) -> Call {
    Call::post("/sign-in", &[("email", email), ("password", password)])
}

/// A request of a browser.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Call {
    pub(crate) fn get(path: &str) -> Self {
        let headers = vec![("host", "localhost:8081".to_owned())];
        Self { method: "GET", path: path.to_owned(), headers, body: String::new() }
    }

    pub(crate) fn post(path: &str, fields: &[(&str, &str)]) -> Self {
        let mut body = form_urlencoded::Serializer::new(String::new());
        for (name, value) in fields {
            body.append_pair(name, value);
        }
        Self { method: "POST", body: body.finish(), ..Self::get(path) }
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(known, _value)| *known != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _value)| *known != name);
        self
    }

    pub(crate) fn cookies(self, cookies: &str) -> Self {
        self.header("cookie", cookies)
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn location(&self) -> &str {
        self.header(LOCATION.as_str()).unwrap_or_else(|| panic!("no location: {self:?}"))
    }

    /// The cookies that it sets, as a browser shows them.
    pub(crate) fn cookies(&self) -> String {
        let lines = self.headers.get_all(SET_COOKIE).iter().map(|line| line.to_str().unwrap());
        let pairs = lines.map(|line| line.split(';').next().unwrap().to_owned());
        pairs.collect::<Vec<_>>().join("; ")
    }
}

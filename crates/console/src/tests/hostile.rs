//! Whoever means harm, at every route and every form of the router's own table: a page that is new is tried by itself.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use holdfast_accounts::{
    ExternalId, NewAdminKey, NewInvitation, NewWallet, NewWebhook, PostingOrder, Principal, VERBS,
};
use holdfast_domain::admin::event::EventFilter;
use holdfast_domain::admin::job::JobKind;
use holdfast_domain::admin::listing::{Order, PageRequest, PostingFilter, PostingList};
use holdfast_domain::admin::{PostingDetails, Reach, Role, WalletPatch};
use holdfast_domain::ports::Statistics as _;
use holdfast_domain::private::Private;
use holdfast_domain::statistics::{RefusalBatch, RefusedRequest, Shortage};
use holdfast_domain::{ApiKeyId, Currency, Micros, RequestId, WalletId};
use holdfast_testkit::sample;
use uuid::Uuid;

use crate::pages::parts::reference::to_wallet;
use crate::tests::book::{OpsWorld, owner, request, visitor};
use crate::tests::site::{Call, EMAIL, PASSWORD, World, sign_in};

/// The router's own table.
const TABLE: &str = include_str!("../pages.rs");
const KEY: &str = "key=5d0c7c4e-6a55-4c1c-9d0f-3f0b1f3d7a21";
/// Markup, as long as a name may be.
const MARKUP: &str = "<b>\"&'</b><script>alert(1)</script><img src=x onerror=alert(1)>";

/// Name in letters that run from right to left.
const TYPED: &str = "שלום";

/// Kind of a route, by its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RouteKind {
    /// A page.
    Page,
    /// A form under a request key.
    Form,
    /// A form of the visitor's own account, or of nobody's.
    Plain,
}

/// All routes of the table, by their paths.
fn routes() -> Vec<(String, RouteKind)> {
    let lines = TABLE.split(".route(").skip(1).filter(|route| !route.starts_with('&'));
    let route = |line: &'static str| {
        let (_, line) = line.split_once('"').unwrap();
        let (path, rest) = line.split_once('"').unwrap();
        let rest = rest.split("\n}").next().unwrap();
        let kind = if rest.contains("methods::<") {
            RouteKind::Form
        } else if rest.contains("post(") {
            RouteKind::Plain
        } else {
            RouteKind::Page
        };
        (path.to_owned(), kind)
    };
    let verbs = VERBS.iter().map(|verb| (verb.page(), RouteKind::Form));
    let routes: Vec<_> = lines.map(route).chain(verbs).collect();
    let of = |kind| routes.iter().filter(|(_, it)| *it == kind).count();
    let counts = [RouteKind::Page, RouteKind::Form, RouteKind::Plain].map(of);
    assert!(
        counts[0] >= 20 && counts[1] >= 25 && counts[2] >= 6,
        "the table is not read: {counts:?}"
    );
    routes
}

/// The path of a route, with ids that nobody has.
fn nobodys(path: &str) -> String {
    let id = "01890000-0000-7000-8000-000000000000";
    let token = "A".repeat(43);
    path.replace("{id}", id).replace("{event}", id).replace("{token}", &token)
}

/// A request of this API key that was refused.
async fn refused(world: &OpsWorld, wallet: WalletId, api_key: ApiKeyId) -> RequestId {
    let request = RefusedRequest {
        id: RequestId::from(Uuid::new_v4()),
        at: sample::NOW,
        api_key,
        wallet,
        code: "insufficient_funds".into(),
        status: 402,
        model: Some(sample::model()),
        shortage: Some(Shortage { wanted: Micros::new(9), available: Some(Micros::new(3)) }),
    };
    let id = request.id;
    let batch = RefusalBatch { counts: Vec::new(), listed: vec![request] };
    world.store.add_refusals(Arc::new(batch)).await.unwrap();
    id
}

/// Every thing that a page may be of, named by markup.
struct Things {
    ids: Vec<(&'static str, String)>,
    wallet: WalletId,
}

impl Things {
    /// Makes one of each.
    async fn make(world: &OpsWorld, name: &str) -> Self {
        let (local, accounts) = (Principal::local(), &world.accounts);
        let new = NewWallet {
            name: name.parse().unwrap(),
            currency: Currency::USD,
            settings: WalletPatch {
                external_id: Some(name.parse().ok().map(|id: ExternalId| id.as_str().to_owned())),
                low_balance: Some(Some(Micros::new(9_000))),
                ..WalletPatch::default()
            },
        };
        let made = accounts.create_wallet(&local, &request(), &new).await.unwrap();
        let wallet = made.thing.wallet.id;
        let details = PostingDetails {
            note: Some(name.to_owned()),
            reason: Some(name.to_owned()),
            ..PostingDetails::default()
        };
        let order = PostingOrder { amount: Micros::new(5_000), currency: None, details };
        let reason = holdfast_accounts::Request { reason: name.parse().ok(), ..request() };
        accounts.deposit(&local, &request(), &to_wallet(wallet), order.clone()).await.unwrap();
        accounts.adjust(&local, &reason, &to_wallet(wallet), order).await.unwrap();
        let key = world.api_key(wallet, name).await;
        let price = sample::price();
        let operation = world.ended((wallet, key), &price, sample::finished(20, 10)).await;
        let new = NewAdminKey {
            name: name.parse().unwrap(),
            role: Role::Auditor,
            reach: Reach::All,
            ends_at: None,
        };
        let admin_key = accounts.issue_admin_key(&local, &request(), &new).await.unwrap();
        let new = NewInvitation {
            email: "grace@example.com".parse().unwrap(),
            name: name.parse().ok(),
            role: Role::HolderAdmin,
            reach: Reach::Wallet(wallet),
        };
        let person = accounts.invite_person(&local, &request(), &new).await.unwrap();
        let new = NewWebhook {
            wallet: Some(to_wallet(wallet)),
            url: Private("https://hooks.example.com/in".to_owned()),
            kinds: None,
            description: Some(name.parse().unwrap()),
        };
        let hook = accounts.create_webhook(&local, &request(), &new).await.unwrap();
        let job = accounts.start_job(&local, &request(), JobKind::Verification, None).await;
        let page = PageRequest::first(Order::Newest, 1);
        let of = EventFilter { wallet: Some(wallet), kind: None };
        let events = accounts.events(&local, of, page).await.unwrap();
        let (list, wallet_id) = (PostingList::Adjustments, Some(wallet));
        let of = PostingFilter { list, wallet: wallet_id, operation: None };
        let postings = accounts.postings(&local, of, page).await.unwrap();
        let ids = vec![
            ("wallets", wallet.to_string()),
            ("keys", key.to_string()),
            ("operations", operation.id.to_string()),
            ("postings", postings.rows[0].posting.id.to_string()),
            ("people", person.thing.person.to_string()),
            ("webhooks", hook.thing.record.id.to_string()),
            ("admin-keys", admin_key.thing.id.to_string()),
            ("jobs", job.unwrap().thing.id.to_string()),
            ("events", events.rows[0].id.to_string()),
            ("refusals", refused(world, wallet, key).await.to_string()),
        ];
        Self { ids, wallet }
    }

    /// The path of a route with the ids of these things; nothing where it is of none of them.
    fn path(&self, path: &str) -> Option<String> {
        let folder = path.split('/').nth(1).unwrap();
        let event = &self.ids.last().unwrap().1;
        let path = path.replace("{event}", event);
        if !path.contains('{') {
            return Some(path);
        }
        let (_, id) = self.ids.iter().find(|(known, _)| *known == folder)?;
        Some(path.replace("{id}", id))
    }
}

/// True for a route of the visitor's own session or address, which a router without the guard has not got.
fn is_of_session(path: &str) -> bool {
    ["/account", "/sign-", "/link/", "/playground"].iter().any(|it| path.starts_with(it))
}

#[tokio::test]
async fn no_form_is_taken_without_its_request_key() {
    let world = World::owned().await;
    let cookies = world.cookies().await;
    for (path, _) in routes().into_iter().filter(|(_, kind)| *kind == RouteKind::Form) {
        let path = nobodys(&path);
        let fields = [("amount", "1"), ("reason", "x"), ("name", "x"), ("confirm", "yes")];
        for query in ["", "?key=", "?key=7", "?key=5D0C7C4E-6A55-4C1C-9D0F-3F0B1F3D7A21"] {
            let call = Call::post(&format!("{path}{query}"), &fields).cookies(&cookies);
            assert_eq!(world.send(call).await.status, 400, "{path}{query}");
        }
    }
}

#[tokio::test]
async fn nothing_is_taken_from_another_origin_or_shown_in_a_frame() {
    let world = World::owned().await;
    let cookies = world.cookies().await;
    for (path, kind) in routes() {
        let path = nobodys(&path);
        let shown = world.send(Call::get(&path).cookies(&cookies)).await;
        let policy = shown.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert_eq!(shown.header("x-content-type-options"), Some("nosniff"), "{path}");
        for policy in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
            assert_eq!(shown.header(policy), Some("same-origin"), "{path}: {policy}");
        }
        let features = shown.header("permissions-policy").unwrap();
        assert!(
            features.contains("camera=()") && features.contains("usb=()"),
            "{path}: {features}"
        );
        assert_eq!(shown.header("referrer-policy"), Some("strict-origin"), "{path}");
        assert_eq!(shown.header("cache-control"), Some("no-store"), "{path}");
        if kind == RouteKind::Page {
            continue;
        }
        let call = Call::post(&format!("{path}?{KEY}"), &[("reason", "x")]).cookies(&cookies);
        for (site, origin) in [
            (Some("cross-site"), None),
            (Some("same-site"), None),
            (Some("none"), None),
            (None, None),
            (None, Some("http://evil.example")),
            (None, Some("null")),
            (Some("cross-site"), Some("http://localhost:8081")),
        ] {
            let mut call = call.clone().without("sec-fetch-site");
            if let Some(site) = site {
                call = call.header("sec-fetch-site", site);
            }
            if let Some(origin) = origin {
                call = call.header("origin", origin);
            }
            assert_eq!(world.send(call).await.status, 403, "{path} {site:?} {origin:?}");
        }
    }
    assert_eq!(world.send(Call::get("/account").cookies(&cookies)).await.status, 200);
}

#[tokio::test]
async fn nobody_gets_anything_without_a_session_or_under_another_name() {
    let world = World::owned().await;
    let cookies = world.cookies().await;
    for (path, kind) in routes() {
        let is_open = path.starts_with("/sign-") || path.starts_with("/link/");
        let path = nobodys(&path);
        let mut calls = vec![Call::get(&path), Call::get(&path).cookies("holdfast=AAAA")];
        if kind != RouteKind::Page {
            calls.push(Call::post(&format!("{path}?{KEY}"), &[("reason", "x")]));
        }
        for call in calls {
            let misdirected = call.clone().header("host", "evil.example").cookies(&cookies);
            assert_eq!(world.send(misdirected).await.status, 421, "{path}");
            if is_open {
                continue;
            }
            let reply = world.send(call).await;
            assert_eq!(reply.status, 303, "{path}: {reply:?}");
            assert!(reply.location().starts_with("/sign-in"), "{path}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn what_a_role_may_not_open_it_may_not_send() {
    let world = OpsWorld::new().await;
    let things = Things::make(&world, "acme").await;
    let mut refused = 0;
    for (route, _) in routes().into_iter().filter(|(_, kind)| *kind == RouteKind::Form) {
        let path = things.path(&route).unwrap();
        for role in Role::ALL {
            let reach = if role.is_holder() { Reach::Wallet(things.wallet) } else { Reach::All };
            let visitor = visitor(role, reach);
            let opened = world.get(&visitor, &path).await.status;
            let fields = [("amount", "1"), ("reason", "x"), ("name", "x")];
            let sent = world.post(&visitor, &path, &fields).await.status;
            // Without a key nothing is done; who may not do it hears of that first.
            let expected = if opened == 303 { 400 } else { opened };
            assert_eq!(sent, expected, "{role} {path}");
            assert!([303, 403, 404].contains(&opened), "{role} {path}: {opened}");
            if opened != 303 {
                refused += 1;
                let sent = world.post(&visitor, &format!("{path}?{KEY}"), &fields).await;
                assert!([403, 404].contains(&sent.status), "{role} {path}: {sent:?}");
            }
            assert!(role != Role::HolderViewer || opened != 303, "a viewer changes {path}");
        }
    }
    assert!(refused > 100, "{refused}");
}

#[tokio::test]
async fn nothing_of_another_wallet_is_there_for_a_holder_at_any_route() {
    let world = OpsWorld::new().await;
    let things = Things::make(&world, "a secret name").await;
    let own = world.wallet("own", 1_000).await;
    let before = world.accounts.wallet(&Principal::local(), &to_wallet(things.wallet)).await;
    let mut tried = 0;
    for role in Role::ALL.into_iter().filter(|role| role.is_holder()) {
        let holder = visitor(role, Reach::Wallet(own));
        for (route, kind) in routes().into_iter().filter(|(path, _)| !is_of_session(path)) {
            let path = things.path(&route).unwrap();
            let address = if kind == RouteKind::Form { format!("{path}?{KEY}") } else { path };
            let shown = world.get(&holder, &address).await;
            assert!(!shown.html.contains("secret name"), "{role} {address}");
            if !route.contains("{id}") {
                continue;
            }
            tried += 1;
            assert!([403, 404].contains(&shown.status), "{role} {address}: {}", shown.status);
            if kind == RouteKind::Form {
                let fields = [("amount", "0.001"), ("reason", "x"), ("confirm", "yes")];
                let sent = world.post(&holder, &address, &fields).await;
                assert!([403, 404].contains(&sent.status), "{role} {address}: {sent:?}");
                assert!(!sent.html.contains("secret name"), "{role} {address}");
            }
        }
    }
    let after = world.accounts.wallet(&Principal::local(), &to_wallet(things.wallet)).await;
    assert_eq!(before.unwrap(), after.unwrap());
    assert!(tried > 90, "{tried}");
}

#[tokio::test]
async fn a_form_that_somebody_else_sends_again_moves_nothing() {
    let world = OpsWorld::new().await;
    let things = Things::make(&world, "acme").await;
    let address = format!("/wallets/{}/deposit?{KEY}", things.wallet);
    let fields = [("amount", "2"), ("confirm", "yes")];
    let available = async || {
        let wallet = to_wallet(things.wallet);
        world.accounts.wallet(&Principal::local(), &wallet).await.unwrap().wallet.available
    };
    let before = available().await;
    assert_eq!(world.post(&owner(), &address, &fields).await.status, 303);
    let after = before.plus(Micros::new(2_000_000)).unwrap();
    assert_eq!(available().await, after);
    let other = [("amount", "3"), ("confirm", "yes")];
    for role in Role::ALL {
        let reach = if role.is_holder() { Reach::Wallet(things.wallet) } else { Reach::All };
        for fields in [&fields, &other] {
            let sent = world.post(&visitor(role, reach), &address, fields).await;
            let may = matches!(role, Role::Owner | Role::Finance);
            assert!(may || sent.status == 403, "{role}: {sent:?}");
        }
    }
    assert_eq!(available().await, after, "one key is one deposit, whoever sends it");
}

#[tokio::test]
async fn markup_in_every_field_is_text_on_every_page() {
    let world = OpsWorld::new().await;
    let things = Things::make(&world, MARKUP).await;
    let mut seen = Vec::new();
    for (route, kind) in routes().into_iter().filter(|(path, _)| !is_of_session(path)) {
        let path = things.path(&route).unwrap();
        let address = if kind == RouteKind::Form { format!("{path}?{KEY}") } else { path };
        let shown = world.get(&owner(), &address).await;
        let is_file = route.ends_with(".csv");
        if !is_file {
            for raw in ["<b>", "<script>alert", "<img", "onerror=alert(1)>"] {
                assert!(!shown.html.contains(raw), "{address}: {}", shown.html);
            }
        }
        if shown.html.contains("&#60;b&#62;") {
            seen.push(route);
        }
    }
    for route in [
        "/wallets",
        "/wallets/{id}",
        "/payments",
        "/postings/{id}",
        "/keys",
        "/keys/{id}",
        "/operations",
        "/people/{id}",
        "/webhooks/{id}",
        "/admin-keys",
        "/admin-keys/{id}",
    ] {
        assert!(seen.iter().any(|it| it == route), "{route} does not show it: {seen:?}");
    }
}

/// The markup without elements whose content is plain text.
fn without_plain_text(html: &str) -> String {
    let mut html = html.to_owned();
    for name in ["title", "pre", "option", "textarea"] {
        while let Some(begin) = html.find(&format!("<{name}")) {
            let end = format!("</{name}>");
            let length = html[begin..].find(&end).unwrap() + end.len();
            html.replace_range(begin..begin + length, "");
        }
    }
    html
}

#[tokio::test]
async fn typed_texts_are_isolated_on_every_page() {
    let world = OpsWorld::new().await;
    let things = Things::make(&world, TYPED).await;
    let mut seen = 0;
    for (route, kind) in routes().into_iter().filter(|(path, _)| !is_of_session(path)) {
        let path = things.path(&route).unwrap();
        let address = if kind == RouteKind::Form { format!("{path}?{KEY}") } else { path };
        let shown = world.get(&owner(), &address).await;
        if route.ends_with(".csv") {
            continue;
        }
        let html = without_plain_text(&shown.html);
        for (at, _) in html.match_indices(TYPED) {
            let before = &html[..at];
            let is_attribute = before.rfind('<') > before.rfind('>');
            let is_isolated = before.rfind("<bdi>") > before.rfind("</bdi>");
            assert!(is_attribute || is_isolated, "{address}: {}", &html[at.saturating_sub(99)..at]);
            seen += usize::from(is_isolated && !is_attribute);
        }
        assert!(!shown.html.contains("<option value"), "{address}: an option has a direction");
    }
    assert!(seen > 40, "{seen}");
}

#[tokio::test]
async fn a_hundred_wrong_passwords_from_many_addresses_keep_nobody_out() {
    let world = World::owned().await;
    let known = world.cookies().await;
    let device = known.split("; ").find(|pair| pair.starts_with("holdfast-device=")).unwrap();
    let mut judged = 0;
    for last in 1..=100 {
        let from = IpAddr::V4(Ipv4Addr::new(198, 51, 100, last));
        let reply = world.send_from(from, sign_in(EMAIL, "wrong horse battery")).await;
        match reply.status {
            401 => judged += 1,
            429 => assert!(reply.header("retry-after").is_some(), "{reply:?}"),
            _ => panic!("{reply:?}"),
        }
        assert_eq!(reply.cookies(), "");
    }
    assert!((20..=31).contains(&judged), "{judged} of a hundred were judged within an hour");
    let reply = world.send(sign_in(EMAIL, PASSWORD).cookies(device)).await;
    assert_eq!(reply.status, 303, "whoever signed in from here before is let in: {reply:?}");
    assert_eq!(world.send(Call::get("/").cookies(&known)).await.status, 200, "and stays in");
}

#[tokio::test]
async fn many_sign_ins_at_once_are_told_to_come_again() {
    let world = World::owned().await;
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..64_u8 {
        let console = world.console.clone();
        asked.spawn(async move {
            let from = IpAddr::V4(Ipv4Addr::new(203, 0, 113, number));
            let call = sign_in(&format!("nobody-{number}@example.com"), "wrong horse battery");
            World::answer_of(&console, from, call).await.status
        });
    }
    let statuses = asked.join_all().await;
    let of = |status: u16| statuses.iter().filter(|it| **it == status).count();
    assert_eq!(of(401) + of(429), 64, "{statuses:?}");
    assert!(of(429) >= 1 && of(401) >= 33, "one hashes and 32 wait: {statuses:?}");
    let id = Uuid::new_v4();
    assert_eq!(world.send(Call::get(&format!("/link/{id}"))).await.status, 404, "pages go on");
}

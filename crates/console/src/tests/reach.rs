//! What a visitor sees: never more than their role and their wallet, nothing unescaped, and no page too large.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use holdfast_accounts::{NewAdminKey, NewInvitation, NewWebhook, Principal, SubjectKind, VERBS};
use holdfast_domain::WalletId;
use holdfast_domain::admin::event::EventFilter;
use holdfast_domain::admin::job::JobKind;
use holdfast_domain::admin::listing::{Order, PageRequest, TrailFilter};
use holdfast_domain::admin::{Reach, ResourceId, Role, UseCase};
use holdfast_domain::conduct::Ending;
use holdfast_domain::private::Private;
use holdfast_testkit::sample;

use crate::pages::parts::reference::to_wallet;
use crate::tests::book::{OpsWorld, book, owner, request, visitor};

const LISTS: [&str; 11] = [
    "/",
    "/operations",
    "/usage",
    "/models",
    "/routes",
    "/events",
    "/webhooks",
    "/trail",
    "/jobs",
    "/admin-keys",
    "/usage?first=hour&second=api_key",
];
/// A name that is markup, as long as a name may be.
const MARKUP: &str = "<b>\"&'</b><script>alert(1)</script><img src=x onerror=alert(1)>";

async fn webhook(world: &OpsWorld, wallet: Option<WalletId>, description: &str) -> String {
    let new = NewWebhook {
        wallet: wallet.map(to_wallet),
        url: Private("https://hooks.example.com/in".to_owned()),
        kinds: None,
        description: Some(description.parse().unwrap()),
    };
    let made = world.accounts.create_webhook(&Principal::local(), &request(), &new).await.unwrap();
    format!("/webhooks/{}", made.thing.record.id)
}

#[tokio::test]
async fn a_holder_sees_one_wallet_and_no_route() {
    let world = OpsWorld::new().await;
    let (own, other) = (world.wallet("acme", 5_000).await, world.wallet("globex", 5_000).await);
    let [own_key, other_key] =
        [world.api_key(own, "acme-key").await, world.api_key(other, "globex-key").await];
    let price = sample::price();
    let mine = world.ended((own, own_key), &price, sample::finished(20, 10)).await;
    let theirs = world.ended((other, other_key), &price, sample::finished(20, 10)).await;
    let hook = webhook(&world, Some(other), "theirs").await;
    webhook(&world, None, "the operator's").await;
    let page = PageRequest::first(Order::Newest, 50);
    let filter = EventFilter { wallet: Some(other), kind: None };
    let events = world.accounts.events(&Principal::local(), filter, page).await.unwrap();
    let event = format!("/events/{}", events.rows[0].id);
    for role in Role::ALL.into_iter().filter(|role| role.is_holder()) {
        let holder = visitor(role, Reach::Wallet(own));
        for path in [format!("/operations/{}", theirs.id), event.clone()] {
            assert_eq!(world.get(&holder, &path).await.status, 404, "{role} {path}");
        }
        let hook = world.get(&holder, &hook).await.status;
        assert_eq!(hook, if role == Role::HolderAdmin { 404 } else { 403 }, "{role}");
        let shown = format!("/operations/{}", mine.id);
        let own_page = world.page(&holder, &shown).await;
        assert!(own_page.contains("Charge breakdown"), "{role}");
        for path in LISTS.into_iter().chain([shown.as_str()]) {
            let html = world.get(&holder, path).await.html;
            for hidden in [
                "globex",
                "upstream/large",
                "sim/sample",
                "node-a",
                "Cost to you",
                "Margin",
                "At risk",
                "known cost",
                "theirs",
            ] {
                assert!(!html.contains(hidden), "{role} sees {hidden} on {path}: {html}");
            }
            assert!(!html.contains(&theirs.id.to_string()), "{role} {path}");
        }
        let routes = world.get(&holder, "/usage?first=route").await.status;
        assert!((400..500).contains(&routes), "{role}: {routes}");
        let found = world.page(&holder, &format!("/operations?id={}", theirs.id)).await;
        assert!(found.contains("No such request"), "{role}");
        let named = world.get(&holder, &format!("/usage?wallet={other}")).await.status;
        assert_eq!(named, 422, "it does not exist for {role}");
    }
}

async fn check_names_are_those_that_the_role_may_read(world: &OpsWorld) {
    let (own_wallet, other) = (world.wallet("acme", 0).await, world.wallet("globex", 0).await);
    let own_key = ResourceId::ApiKey(world.api_key(own_wallet, "acme-key").await);
    let other_key = ResourceId::ApiKey(world.api_key(other, "globex-key").await);
    let new = NewAdminKey {
        name: "deployer".parse().unwrap(),
        role: Role::Operator,
        reach: Reach::All,
        ends_at: None,
    };
    let made = world.accounts.issue_admin_key(&Principal::local(), &request(), &new).await;
    let admin_key = ResourceId::AdminKey(made.unwrap().thing.id);
    let (own, other) = (ResourceId::Wallet(own_wallet), ResourceId::Wallet(other));
    let new = NewInvitation {
        email: "grace@example.com".parse().unwrap(),
        name: None,
        role: Role::HolderAdmin,
        reach: Reach::Wallet(own_wallet),
    };
    let told = world.accounts.invite_person(&Principal::local(), &request(), &new).await;
    let person = ResourceId::Person(told.unwrap().thing.person);
    let all =
        BTreeSet::from([own, other, own_key, other_key, admin_key, person, ResourceId::Unknown]);
    let mut readers = BTreeSet::new();
    for role in Role::ALL {
        let reach = if role.is_holder() { Reach::Wallet(own_wallet) } else { Reach::All };
        let principal = visitor(role, reach).principal;
        let names = world.accounts.names(&principal, all.clone()).await.unwrap();
        let mut expected = BTreeMap::from([(own, "acme"), (own_key, "acme-key")]);
        if !role.is_holder() {
            expected.extend([(other, "globex"), (other_key, "globex-key")]);
        }
        if role.may(UseCase::AdminKeyRead) {
            expected.insert(admin_key, "deployer");
        }
        // Holders see the people of their wallet on a page of its own, and no names here.
        if role.may(UseCase::PersonRead) && !role.is_holder() {
            expected.insert(person, "grace@example.com");
            readers.insert(principal.actor);
        }
        let expected: BTreeMap<_, _> =
            expected.into_iter().map(|(thing, name)| (thing, name.to_owned())).collect();
        assert_eq!(names, expected, "{role}");
    }
    world.accounts.write_notes(true).await.unwrap();
    let filter = TrailFilter { use_case: Some(UseCase::PersonRead), ..TrailFilter::default() };
    let page = PageRequest::first(Order::Newest, 10);
    let noted = world.accounts.trail(&Principal::local(), filter, page).await.unwrap();
    let noted: BTreeSet<_> = noted.rows.iter().map(|it| it.row.actor).collect();
    assert!(!readers.is_empty() && noted == readers, "{noted:?}");
}

#[tokio::test]
async fn names_are_those_that_the_role_may_read() {
    check_names_are_those_that_the_role_may_read(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_names_are_those_that_the_role_may_read() {
    check_names_are_those_that_the_role_may_read(&OpsWorld::on_a_server().await).await;
}

#[tokio::test]
async fn support_sees_routes_and_no_costs() {
    let world = OpsWorld::new().await;
    let wallet = world.wallet("acme", 5_000).await;
    let api_key = world.api_key(wallet, "key").await;
    let operation =
        world.ended((wallet, api_key), &sample::price(), sample::finished(20, 10)).await;
    let support = visitor(Role::Support, Reach::All);
    let shown = world.page(&support, &format!("/operations/{}", operation.id)).await;
    assert!(shown.contains("sim/sample") && !shown.contains("Cost to you"), "{shown}");
    let usage = world.page(&support, "/usage").await;
    let home = world.page(&support, "/").await;
    for hidden in ["Margin", "Exposure", "At risk", "Cost,", "known cost"] {
        assert!(!usage.contains(hidden) && !home.contains(hidden), "{hidden}: {usage} {home}");
    }
    assert!(home.contains("Revenue today"), "{home}");
    let file = world.get(&support, "/usage.csv").await.html;
    assert!(!file.contains("provider_cost_micros"), "{file}");
}

#[tokio::test]
async fn navigation_and_actions_lead_to_what_the_role_may_see() {
    let world = OpsWorld::new().await;
    let wallet = world.wallet("acme", 5_000).await;
    for role in Role::ALL {
        let reach = if role.is_holder() { Reach::Wallet(wallet) } else { Reach::All };
        let visitor = visitor(role, reach);
        let html = world.page(&visitor, "/").await;
        for path in LISTS {
            let is_linked = html.contains(&format!("<li><a href=\"{path}\""));
            let status = world.get(&visitor, path).await.status;
            let is_listed = !path.contains('?');
            assert_eq!(status, if is_linked || !is_listed { 200 } else { 403 }, "{role} {path}");
        }
        for form in ["/jobs/new", "/webhooks/new", "/admin-keys/new"] {
            let list = world.get(&visitor, form.trim_end_matches("/new")).await.html;
            let status = world.get(&visitor, form).await.status;
            let is_linked = list.contains(&format!("href=\"{form}\""));
            assert_eq!(status, if is_linked { 303 } else { 403 }, "{role} {form}");
        }
    }
}

#[tokio::test]
async fn every_verb_has_its_form() {
    let world = OpsWorld::new().await;
    let wallet = world.wallet("acme", 5_000).await;
    let api_key = world.api_key(wallet, "key").await;
    let hook = webhook(&world, Some(wallet), "the shop").await;
    for verb in VERBS {
        let subject = match verb.subject {
            SubjectKind::Wallet => format!("/wallets/{wallet}"),
            SubjectKind::ApiKey => format!("/keys/{api_key}"),
            SubjectKind::Webhook => hook.clone(),
        };
        let path = format!("{subject}/{}", verb.word);
        let opened = world.get(&owner(), &path).await;
        assert_eq!(opened.status, 303, "{path} is no form");
        let form = world.page(&owner(), &opened.location.unwrap()).await;
        assert!(form.contains("<form class=\"change\""), "{path}: {form}");
        assert!(form.contains(verb.title) && form.contains(verb.hint), "{path}: {form}");
        let (_, reason) = form.split_once("name=\"reason\"").unwrap();
        let (reason, _) = reason.split_once('>').unwrap();
        assert_eq!(reason.contains("required"), verb.needs_reason, "{path}: {form}");
    }
}

/// Everything that has a name, named so, and the paths of what shows it.
async fn named(world: &OpsWorld, name: &str) -> Vec<String> {
    let wallet = world.wallet(name, 500).await;
    let api_key = world.api_key(wallet, name).await;
    let price = sample::price();
    let operation = world.ended((wallet, api_key), &price, sample::finished(20, 10)).await;
    let local = Principal::local();
    let new = NewAdminKey {
        name: name.parse().unwrap(),
        role: Role::Auditor,
        reach: Reach::All,
        ends_at: None,
    };
    let issued = world.accounts.issue_admin_key(&local, &request(), &new).await.unwrap();
    let hook = webhook(world, Some(wallet), name).await;
    let job = world.accounts.start_job(&local, &request(), JobKind::Verification, None).await;
    let page = PageRequest::first(Order::Newest, 1);
    let events = world.accounts.events(&local, EventFilter::default(), page).await.unwrap();
    let mut paths: Vec<_> = LISTS.into_iter().map(str::to_owned).collect();
    paths.extend([
        format!("/operations/{}", operation.id),
        format!("/operations/{}/cancel?key=5d0c7c4e-6a55-4c1c-9d0f-3f0b1f3d7a11", operation.id),
        format!("/admin-keys/{}", issued.thing.id),
        format!("{hook}/test?key=5d0c7c4e-6a55-4c1c-9d0f-3f0b1f3d7a12"),
        hook,
        format!("/jobs/{}", job.unwrap().thing.id),
        format!("/events/{}", events.rows[0].id),
        "/usage?first=wallet&second=api_key".to_owned(),
        "/webhooks/new?key=5d0c7c4e-6a55-4c1c-9d0f-3f0b1f3d7a13".to_owned(),
        "/admin-keys/new?key=5d0c7c4e-6a55-4c1c-9d0f-3f0b1f3d7a14".to_owned(),
        "/jobs/new?key=5d0c7c4e-6a55-4c1c-9d0f-3f0b1f3d7a15".to_owned(),
    ]);
    paths
}

#[tokio::test]
async fn markup_in_a_name_or_a_filter_is_text() {
    let world = OpsWorld::new().await;
    let mut seen = 0;
    for path in named(&world, MARKUP).await {
        let html = world.page(&owner(), &path).await;
        assert!(!html.contains("<b>") && !html.contains("<script>alert"), "{path}: {html}");
        assert!(!html.contains("<img"), "{path}");
        seen += usize::from(html.contains("&#60;b&#62;"));
    }
    assert!(seen >= 6, "the name stands on {seen} pages");
    for path in ["/operations?model=%22%3E%3Cb%3E", "/trail?thing=%3Cb%3E", "/usage?from=%3Cb%3E"] {
        let html = world.get(&owner(), path).await.html;
        assert!(!html.contains("<b>"), "{path}: {html}");
    }
}

#[tokio::test]
async fn a_page_is_of_fifty_kilobytes_at_most() {
    let world = OpsWorld::new().await;
    let book = book(&world, 7, 130, 60).await;
    for number in 0..60 {
        let name = format!("{number:03}-{}", "n".repeat(60));
        let wallet = world.wallet(&name, 10).await;
        world.api_key(wallet, &name).await;
    }
    let mut paths = named(&world, "a name").await;
    paths.extend(book.operations.iter().take(5).map(|it| format!("/operations/{}", it.id)));
    paths.extend(book.wallets.iter().map(|id| format!("/wallets/{id}")));
    let narrowed = format!("wallet={}&api_key={}", book.wallets[0], book.api_keys[0]);
    let model = sample::model().to_string().replace('/', "%2F");
    paths.push(format!("/usage?{narrowed}&model={model}&from=2020-01-01&currency=USD"));
    for path in paths {
        let html = world.page(&owner(), &path).await;
        assert!(html.len() <= 50 << 10, "{path} is of {} bytes", html.len());
    }
}

/// Pages as files, to be looked at in a browser: `target/console/*.html` with the stylesheet beside them.
#[tokio::test]
async fn every_page_can_be_looked_at() {
    let world = OpsWorld::new().await;
    let book = book(&world, 11, 70, 5).await;
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/console");
    fs::create_dir_all(&target).unwrap();
    fs::write(target.join("style.css"), include_str!("../../assets/style.css")).unwrap();
    let owned = (book.wallets[0], book.api_keys[0]);
    let price = sample::tiered("2026-03-01T00:00:00Z", 1_234_567);
    let costly = world.ended(owned, &price, sample::finished(60, 40)).await;
    let lost = world.ended(owned, &price, Ending::Unknown).await;
    let mut paths = named(&world, "Initech").await;
    paths.push(format!("/operations/{}", costly.id));
    paths.push(format!("/operations/{}", lost.id));
    let holder = visitor(Role::HolderAdmin, Reach::Wallet(book.wallets[0]));
    for (number, path) in paths.iter().enumerate() {
        for (who, visitor) in [("owner", &owner()), ("holder", &holder)] {
            let reply = world.get(visitor, path).await;
            if reply.status != 200 {
                assert_eq!(who, "holder", "{path}");
                continue;
            }
            let name = path.split(['?', '/']).find(|part| !part.is_empty()).unwrap_or("today");
            let html = reply.html.replace("/assets/style.css", "style.css");
            fs::write(target.join(format!("{who}-{number:02}-{name}.html")), html).unwrap();
        }
    }
}

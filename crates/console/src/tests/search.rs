//! Search: what each kind of term leads to, and nothing of another wallet, on both databases.

use std::sync::Arc;

use holdfast_accounts::{Edit, NewInvitation, Principal, SearchLimits};
use holdfast_domain::admin::{Reach, Role, WalletPatch};
use holdfast_domain::ports::Statistics;
use holdfast_domain::statistics::{
    RefusalBatch, RefusalCount, RefusalHour, RefusedRequest, hour_of,
};
use holdfast_domain::{ApiKeyId, OperationId, RequestId, WalletId};
use holdfast_testkit::sample;
use uuid::Uuid;

use crate::kit::{Visitor, with_query};
use crate::pages::parts::reference::to_wallet;
use crate::tests::book::{OpsWorld, owner, request, visitor};

/// Where a term leads: the address of the single hit, or nothing for none. Several hits fail.
async fn found(world: &OpsWorld, visitor: &Visitor, term: &str) -> Option<String> {
    let reply = world.get(visitor, &with_query("/search", &[("q", Some(term))])).await;
    if reply.status == 200 {
        assert!(reply.html.contains("Nothing found."), "{term}: {}", reply.html);
        return None;
    }
    assert_eq!(reply.status, 303, "{term}: {}", reply.html);
    reply.location
}

/// A wallet with an external id, an API key, an operation and a person.
struct Customer {
    wallet: WalletId,
    operation: OperationId,
    /// Terms, and the address that each leads to.
    terms: Vec<(String, String)>,
}

async fn customer(world: &OpsWorld, name: &str) -> Customer {
    let local = Principal::local();
    let wallet = world.wallet(name, 5_000).await;
    let external_id = Some(Some(format!("cus_{name}_4711")));
    let patch = WalletPatch { external_id, ..WalletPatch::default() };
    let edit = Edit { patch, expected: None };
    world.accounts.edit_wallet(&local, &request(), &to_wallet(wallet), edit).await.unwrap();
    let key = world.api_key(wallet, &format!("{name} production")).await;
    let ended = world.ended((wallet, key), &sample::price(), sample::finished(20, 10)).await;
    let new = NewInvitation {
        email: format!("ada@{name}.example.com").parse().unwrap(),
        name: None,
        role: Role::HolderAdmin,
        reach: Reach::Wallet(wallet),
    };
    let told = world.accounts.invite_person(&local, &request(), &new).await;
    let person = format!("/people/{}", told.unwrap().thing.person);
    let (operation, request_key) = (ended.id, ended.request_key);
    let page = format!("/operations/{operation}");
    let (of_wallet, of_key) = (format!("/wallets/{wallet}"), format!("/keys/{key}"));
    let digits = operation.to_string().replace('-', "");
    let terms = [
        (operation.to_string(), &page),
        (operation.completion_id(), &page),
        (operation.tool_call_id([0, 1]), &page),
        (digits[..9].to_owned(), &page),
        (operation.to_string()[..12].to_uppercase(), &page),
        (request_key.to_string(), &page),
        (wallet.to_string(), &of_wallet),
        (format!("cus_{name}"), &of_wallet),
        (format!("CUS_{name}_47"), &of_wallet),
        (key.to_string(), &of_key),
        (format!("{name} PROD"), &of_key),
        (format!("da@{name}.exa"), &person),
    ];
    let refused = refused(world, wallet, key).await;
    let refusal = format!("/refusals/{refused}");
    let terms = terms
        .into_iter()
        .chain([(refused.to_string(), &refusal), (refused.to_string().to_uppercase(), &refusal)]);
    let terms = terms.map(|(term, page)| (term, page.clone())).collect();
    Customer { wallet, operation, terms }
}

/// A refused request of an API key.
async fn refused(world: &OpsWorld, wallet: WalletId, api_key: ApiKeyId) -> RequestId {
    let request = RefusedRequest {
        id: RequestId::from(Uuid::new_v4()),
        at: sample::NOW,
        api_key,
        wallet,
        code: "rate_limit_exceeded".into(),
        status: 429,
        model: None,
        shortage: None,
    };
    let id = request.id;
    let of = RefusalHour { hour: hour_of(request.at), wallet, api_key, code: request.code.clone() };
    let counts = vec![RefusalCount { of, count: 1 }];
    let batch = RefusalBatch { counts, listed: vec![request] };
    world.store.add_refusals(Arc::new(batch)).await.unwrap();
    id
}

async fn check_bounds_are_said(world: &OpsWorld) {
    let wallet = world.wallet("acme", 5_000).await;
    let key = world.api_key(wallet, "first").await;
    let ended = world.ended((wallet, key), &sample::price(), sample::finished(20, 10)).await;
    for n in 0..20 {
        world.api_key(wallet, &format!("shop {n}")).await;
    }
    let search = async |term: &str, limits| {
        let term = term.parse().unwrap();
        world.accounts.search(&Principal::local(), &term, limits).await.unwrap()
    };
    // A request key is looked up under so many API keys, and no more.
    let request_key = ended.request_key.to_string();
    let all = SearchLimits::default();
    for (api_keys, is_found) in [(20, false), (21, true)] {
        let found = search(&request_key, SearchLimits { api_keys, ..all }).await;
        assert_eq!((found.hits.len() == 1, found.needs_api_key), (is_found, !is_found));
    }
    // Of each kind there are so many, and a word that there are more.
    for (matches, has_more) in [(19, true), (20, false)] {
        let found = search("shop", SearchLimits { matches, ..all }).await;
        let matches = usize::try_from(matches).unwrap();
        assert_eq!((found.hits.len(), found.has_more), (matches, has_more));
    }
    assert!(!world.page(&owner(), "/search?q=shop").await.contains("More results"));
    world.api_key(wallet, "shop 20").await;
    let page = world.page(&owner(), "/search?q=shop").await;
    assert!(page.contains("More results than shown: enter more of the term."), "{page}");
}

#[tokio::test]
async fn bounds_are_said() {
    check_bounds_are_said(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn people_of_a_wallet_are_read_for_a_part_of_an_address_alone() {
    let world = OpsWorld::new().await;
    let own = customer(&world, "acme").await;
    let admin = visitor(Role::HolderAdmin, Reach::Wallet(own.wallet));
    let notes = async || {
        world.accounts.write_notes(true).await.unwrap();
        let trail = world.page(&owner(), "/trail?use_case=person.read").await;
        trail.matches("person.read</bdi>").count()
    };
    for (term, is_noted) in [
        (own.operation.to_string(), false),
        (own.operation.completion_id(), false),
        ("4711471147".to_owned(), false),
        ("ada@acme".to_owned(), true),
    ] {
        let before = notes().await;
        world.get(&admin, &with_query("/search", &[("q", Some(&term))])).await;
        assert_eq!(notes().await > before, is_noted, "{term}");
    }
}

async fn check_every_kind_of_term_leads_to_its_page(world: &OpsWorld) {
    let (own, other) = (customer(world, "acme").await, customer(world, "globex").await);
    for (term, page) in own.terms.iter().chain(&other.terms) {
        assert_eq!(found(world, &owner(), term).await.as_ref(), Some(page), "{term}");
    }
    let [admin, viewer] = [Role::HolderAdmin, Role::HolderViewer]
        .map(|role| visitor(role, Reach::Wallet(own.wallet)));
    for (term, page) in &own.terms {
        assert_eq!(found(world, &admin, term).await.as_ref(), Some(page), "{term}");
        let is_read = !page.starts_with("/people/");
        assert_eq!(found(world, &viewer, term).await.is_some(), is_read, "{term}");
    }
    // Another wallet's term and one that names nothing have one answer, to the byte but for the term itself.
    let answer = async |visitor: &Visitor, term: &str| {
        let page = world.page(visitor, &with_query("/search", &[("q", Some(term))])).await;
        page.replace(term, "TERM")
    };
    for visitor in [&admin, &viewer] {
        let nothing = answer(visitor, &Uuid::now_v7().to_string()).await;
        for (term, _page) in &other.terms {
            assert_eq!(answer(visitor, term).await, nothing, "{term}");
        }
    }
    // Several hits are listed by name; support reads no people.
    let list = world.page(&owner(), "/search?q=ACME").await;
    for (text, is_there) in [(">acme<", true), ("acme production", true), ("globex", false)] {
        assert_eq!(list.contains(text), is_there, "{text}: {list}");
    }
    assert!(list.contains("ada@acme.example.com") && list.contains("value=\"ACME\""), "{list}");
    let of_support = world.page(&visitor(Role::Support, Reach::All), "/search?q=acme").await;
    assert!(!of_support.contains("ada@"), "{of_support}");
    assert_ne!(own.operation, other.operation);
}

#[tokio::test]
async fn every_kind_of_term_leads_to_its_page() {
    check_every_kind_of_term_leads_to_its_page(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_every_kind_of_term_leads_to_its_page() {
    check_every_kind_of_term_leads_to_its_page(&OpsWorld::on_a_server().await).await;
}

async fn check_hostile_terms_match_themselves_and_nothing_else(world: &OpsWorld) {
    world.wallet("plain", 5_000).await;
    let odd = world.wallet("100%_of!\\'\"", 5_000).await;
    let page = Some(format!("/wallets/{odd}"));
    for term in ["%", "_", "!", "\\", "'", "\"", "0%_of!", "!\\'\"", "%_OF"] {
        assert_eq!(found(world, &owner(), term).await, page, "{term}");
    }
    let longest = "x".repeat(128);
    for term in ["%plain", "pl_in", "' OR '1'='1", "<b>\"'", "chatcmpl_", "call_x_0_0", &longest] {
        assert_eq!(found(world, &owner(), term).await, None, "{term}");
    }
    for term in ["a\0b", "\u{1b}[31m", &format!("{longest}x")] {
        let path = with_query("/search", &[("q", Some(term))]);
        let reply = world.get(&owner(), &path).await;
        assert_eq!(reply.status, 422, "{term:?}: {}", reply.html);
        assert!(reply.html.contains("1 to 128 printable characters"), "{}", reply.html);
    }
    let empty = world.page(&owner(), "/search?q=+").await;
    assert!(empty.contains("refused request is found by its whole x-request-id"), "{empty}");
}

#[tokio::test]
async fn hostile_terms_match_themselves_and_nothing_else() {
    check_hostile_terms_match_themselves_and_nothing_else(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_hostile_terms_match_themselves_and_nothing_else() {
    check_hostile_terms_match_themselves_and_nothing_else(&OpsWorld::on_a_server().await).await;
}

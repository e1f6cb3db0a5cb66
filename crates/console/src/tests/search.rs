//! Search: what each kind of term leads to, and nothing of another wallet, on both databases.

use holdfast_accounts::{Edit, NewInvitation, Principal};
use holdfast_domain::admin::{Reach, Role, WalletPatch};
use holdfast_domain::{OperationId, WalletId};
use holdfast_testkit::sample;
use uuid::Uuid;

use crate::kit::address::with_query;
use crate::kit::visitor::Visitor;
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
    let terms = terms.map(|(term, page)| (term, page.clone())).to_vec();
    Customer { wallet, operation, terms }
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
    assert!(empty.contains("x-request-id is not stored"), "{empty}");
}

#[tokio::test]
async fn hostile_terms_match_themselves_and_nothing_else() {
    check_hostile_terms_match_themselves_and_nothing_else(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_hostile_terms_match_themselves_and_nothing_else() {
    check_hostile_terms_match_themselves_and_nothing_else(&OpsWorld::on_a_server().await).await;
}

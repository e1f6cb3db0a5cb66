//! People of several wallets: each holder sees what was written for their wallet, and keeps no other one out.

use holdfast_accounts::{LinkError, NewInvitation, Principal};
use holdfast_domain::admin::listing::{Order, PageRequest, PersonFilter};
use holdfast_domain::admin::{ActorId, Authority, PersonRecord, PersonState, Reach, Role};
use holdfast_domain::secret::LinkToken;
use holdfast_domain::{PersonId, WalletId};

use crate::administration::make_wallet;
use crate::people::{Desk, admin_of, password, request, viewer_of};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

const EMAIL: &str = "ada@example.com";

/// A wallet with its administrator.
async fn tenant(home: &impl Home, desk: &Desk, name: &str) -> (WalletId, Principal) {
    let wallet = make_wallet(home.store(), name).await;
    let admin = desk.member(&format!("admin@{name}.example"), admin_of(wallet)).await;
    (wallet, Principal::of_person(admin, admin_of(wallet), None))
}

async fn invite(
    desk: &Desk,
    by: &Principal,
    authority: Authority,
    name: Option<&str>,
) -> (PersonId, LinkToken) {
    let new = NewInvitation {
        email: EMAIL.parse().unwrap(),
        name: name.map(|name| name.parse().unwrap()),
        role: authority.role,
        reach: authority.reach,
    };
    let told = desk.accounts.invite_person(by, &request(), &new).await.unwrap().thing;
    (told.person, told.link.unwrap())
}

fn name_of(record: &PersonRecord) -> Option<&str> {
    record.person.name.as_ref().map(|name| name.0.as_str())
}

async fn a_holder_sees_of_a_person_what_the_own_wallet_wrote(home: &impl Home) {
    let desk = Desk::of(home).await;
    let (acme, boss) = tenant(home, &desk, "acme").await;
    let (other, rival) = tenant(home, &desk, "other").await;
    let seen = async |by: &Principal, id| desk.accounts.person(by, id).await.unwrap();
    let (ada, link) = invite(&desk, &rival, viewer_of(other), Some("Rival's Ada")).await;
    let (same, own_link) = invite(&desk, &boss, viewer_of(acme), None).await;
    assert_eq!(same, ada);
    desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    let theirs = seen(&rival, ada).await;
    assert_eq!((name_of(&theirs), theirs.state()), (Some("Rival's Ada"), PersonState::Active));
    let own = seen(&boss, ada).await;
    assert_eq!((name_of(&own), own.state()), (None, PersonState::Pending), "accepted elsewhere");
    assert_eq!(own.person.created_by, boss.actor);
    assert!(own.person.created_at > theirs.person.created_at, "the moment of that invitation");
    assert_eq!((own.grants.len(), own.links.len(), own.invitations.len()), (0, 1, 1));
    let page = PageRequest::first(Order::Oldest, 10);
    let listed = async |by: &Principal, state| {
        let filter = PersonFilter { state: Some(state), ..PersonFilter::default() };
        let found = desk.accounts.people(by, filter, page).await.unwrap().rows;
        found.iter().any(|record| record.person.id == ada)
    };
    assert!(listed(&boss, PersonState::Pending).await && !listed(&boss, PersonState::Active).await);
    assert!(
        listed(&rival, PersonState::Active).await && !listed(&rival, PersonState::Pending).await
    );
    assert!(listed(&desk.local, PersonState::Active).await);
    desk.accounts.accept_link(&own_link, None, Some(ada)).await.unwrap();
    let own = seen(&boss, ada).await;
    assert_eq!((name_of(&own), own.state()), (None, PersonState::Active));
    // What is erased is erased for each of them.
    desk.end(ada, true).await.unwrap();
    let mut raw = Raw::open(home).await;
    let names = "SELECT count(*) FROM person_invitations WHERE name IS NOT NULL AND person_id IN
        (SELECT id FROM people WHERE ended_at IS NOT NULL)";
    assert_eq!(raw.number(names).await, 0);
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn a_person_has_an_open_link_for_each_reach(home: &impl Home) {
    let desk = Desk::of(home).await;
    let (acme, boss) = tenant(home, &desk, "acme").await;
    let (other, rival) = tenant(home, &desk, "other").await;
    let support = Authority { role: Role::Support, reach: Reach::All };
    let is_open = async |link: &LinkToken| desk.accounts.look_at_link(link).await.is_ok();
    let (ada, of_acme) = invite(&desk, &boss, viewer_of(acme), None).await;
    let (_ada, of_other) = invite(&desk, &rival, viewer_of(other), None).await;
    let (_ada, of_operators) = invite(&desk, &desk.local, support, None).await;
    let (_ada, later) = invite(&desk, &boss, admin_of(acme), None).await;
    assert!(!is_open(&of_acme).await, "a later one within a reach takes its place");
    for link in [&of_other, &of_operators, &later] {
        assert!(is_open(link).await, "and no other one's");
    }
    assert_eq!(desk.accounts.person(&desk.local, ada).await.unwrap().links.len(), 3);
    let told = desk.accounts.renew_link(&rival, &request(), ada).await.unwrap().thing;
    assert!(!is_open(&of_other).await && is_open(&later).await && is_open(&of_operators).await);
    desk.end_grant(&boss, ada, admin_of(acme)).await.unwrap();
    assert!(!is_open(&later).await && is_open(&of_operators).await);
    let link = told.link.unwrap();
    desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    // A password of the one reach is proven for another one.
    let unproven = desk.accounts.accept_link(&of_operators, Some(&password()), None).await;
    assert!(matches!(unproven, Err(LinkError::SignInFirst)), "{unproven:?}");
    desk.accounts.accept_link(&of_operators, None, Some(ada)).await.unwrap();
    let grants = desk.accounts.person(&desk.local, ada).await.unwrap().grants;
    assert_eq!(
        grants.iter().map(|it| it.authority).collect::<Vec<_>>(),
        [viewer_of(other), support]
    );
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn a_name_is_of_the_newest_invitation_and_ends_with_the_last(home: &impl Home) {
    let desk = Desk::of(home).await;
    let (acme, boss) = tenant(home, &desk, "acme").await;
    let (other, rival) = tenant(home, &desk, "other").await;
    let named = async |by: &Principal, id| {
        name_of(&desk.accounts.person(by, id).await.unwrap()).map(str::to_owned)
    };
    invite(&desk, &rival, viewer_of(other), Some("Rival's Ada")).await;
    let (ada, _link) = invite(&desk, &boss, viewer_of(acme), Some("Ade")).await;
    invite(&desk, &boss, viewer_of(acme), Some("Ada")).await;
    assert_eq!(named(&boss, ada).await.as_deref(), Some("Ada"));
    let (_ada, link) = invite(&desk, &boss, viewer_of(acme), None).await;
    assert_eq!(named(&boss, ada).await.as_deref(), Some("Ada"), "none is no other name");
    desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    desk.end_grant(&boss, ada, viewer_of(acme)).await.unwrap();
    invite(&desk, &boss, admin_of(acme), None).await;
    assert_eq!(named(&boss, ada).await, None, "the invitation ended with the role");
    desk.end_grant(&boss, ada, admin_of(acme)).await.unwrap();
    let mut raw = Raw::open(home).await;
    let names = "SELECT count(*) FROM person_invitations WHERE name = 'Rival''s Ada'";
    assert_eq!(raw.number(names).await, 1, "one of another wallet stays");
    let all = "SELECT count(*) FROM person_invitations AS i JOIN people AS p ON p.id = i.person_id
        WHERE p.email = 'ada@example.com'";
    assert_eq!(raw.number(all).await, 1);
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn a_link_that_sets_a_password_ends_with_a_newer_one_and_with_a_password(home: &impl Home) {
    let desk = Desk::of(home).await;
    let (acme, boss) = tenant(home, &desk, "acme").await;
    let is_open = async |link: &LinkToken| desk.accounts.look_at_link(link).await.is_ok();
    let (ada, link) = invite(&desk, &boss, viewer_of(acme), None).await;
    desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    let renew = async |by: &Principal| {
        let told = desk.accounts.renew_link(by, &request(), ada).await.unwrap();
        told.thing.link.unwrap()
    };
    let of_acme = renew(&boss).await;
    let of_operators = renew(&desk.local).await;
    assert!(!is_open(&of_acme).await && is_open(&of_operators).await);
    let again = renew(&boss).await;
    assert!(!is_open(&of_operators).await && is_open(&again).await);
    desk.accounts.accept_link(&again, Some(&password()), None).await.unwrap();
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
    // A version before leaves links of other reaches open.
    let left = renew(&desk.local).await;
    let mut raw = Raw::open(home).await;
    raw.run("UPDATE person_wallet_links SET used_at = NULL").await;
    desk.accounts.accept_link(&left, Some(&password()), None).await.unwrap();
    let unused = "SELECT count(*) FROM person_wallet_links
        WHERE purpose = 'set_password' AND used_at IS NULL";
    assert_eq!(raw.number(unused).await, 0);
}

/// A node of the version before writes all links of a person to one row, and no invitation.
async fn links_of_a_version_before_are_found_and_keep_their_place(home: &impl Home) {
    let desk = Desk::of(home).await;
    let (acme, boss) = tenant(home, &desk, "acme").await;
    let (other, rival) = tenant(home, &desk, "other").await;
    let (ada, link) = invite(&desk, &boss, viewer_of(acme), Some("Ada")).await;
    let mut raw = Raw::open(home).await;
    let columns = "id, person_id, token, purpose, role, wallet_id, expires_at, used_at, created_by";
    for statement in [
        format!("INSERT INTO person_links ({columns}) SELECT {columns} FROM person_wallet_links"),
        "DELETE FROM person_wallet_links".to_owned(),
        "DELETE FROM person_invitations".to_owned(),
    ] {
        raw.run(&statement).await;
    }
    let seen = desk.accounts.person(&boss, ada).await.unwrap();
    assert_eq!((name_of(&seen), seen.person.created_by), (None, boss.actor));
    assert_ne!(seen.person.created_by, ActorId::Local);
    invite(&desk, &rival, viewer_of(other), None).await;
    assert!(desk.accounts.look_at_link(&link).await.is_ok(), "it was moved");
    desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

on_every_store! {
    a_holder_sees_of_a_person_what_the_own_wallet_wrote,
    a_person_has_an_open_link_for_each_reach,
    a_name_is_of_the_newest_invitation_and_ends_with_the_last,
    a_link_that_sets_a_password_ends_with_a_newer_one_and_with_a_password,
    links_of_a_version_before_are_found_and_keep_their_place,
}

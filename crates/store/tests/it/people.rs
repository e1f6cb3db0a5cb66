//! People over both databases, through the use cases: invited, signed in, ended.

use std::net::IpAddr;
use std::sync::Arc;

use holdfast_accounts::{
    Accounts, AccountsError, BegunSession, LinkError, Listener, NewInvitation, Password, Principal,
    Request, SessionError, SignInError, SignInOrigin, SignedIn,
};
use holdfast_domain::admin::listing::{Order, PageRequest, PersonFilter};
use holdfast_domain::admin::{
    AccountAction, AccountRefusal, AdminKeyAction, Authority, LinkPurpose, PersonState, Reach, Role,
};
use holdfast_domain::secret::{BrowserToken, LinkToken, SessionToken};
use holdfast_domain::{PersonId, WalletId};
use holdfast_testkit::{NoPause, sample};

use crate::administration::{act, make_wallet, secret};
use crate::ended::owner_key;
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
pub(crate) const OWNER: Authority = Authority { role: Role::Owner, reach: Reach::All };

/// The use cases over the book of this home, with the command line beside it.
pub(crate) struct Desk {
    pub(crate) accounts: Accounts,
    pub(crate) local: Principal,
}

impl Desk {
    pub(crate) async fn of(home: &impl Home) -> Self {
        let store = Arc::new(home.again().await);
        let accounts = Accounts::new(store, [secret()], Arc::new(NoPause));
        Self { accounts, local: Principal::local() }
    }

    pub(crate) async fn invite(
        &self,
        by: &Principal,
        email: &str,
        Authority { role, reach }: Authority,
    ) -> Result<(PersonId, LinkToken), AccountsError> {
        let email = email.parse().unwrap();
        let name = Some("Lovelace".parse().unwrap());
        let new = NewInvitation { email, name, role, reach };
        let told = self.accounts.invite_person(by, &request(), &new).await?.thing;
        Ok((told.person, told.link.unwrap()))
    }

    /// Somebody who has accepted, with the password that all of these tests have.
    pub(crate) async fn member(&self, email: &str, authority: Authority) -> PersonId {
        let (person, link) = self.invite(&self.local, email, authority).await.unwrap();
        self.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
        person
    }

    pub(crate) async fn sign_in(
        &self,
        email: &str,
    ) -> Result<(SessionToken, SignedIn), SignInError> {
        let begun = self.begin(email, &password(), None).await?;
        Ok((begun.token, begun.signed_in))
    }

    pub(crate) async fn begin(
        &self,
        email: &str,
        password: &Password,
        mark: Option<&BrowserToken>,
    ) -> Result<BegunSession, SignInError> {
        self.accounts.sign_in(email, password, &origin(1, mark)).await
    }

    pub(crate) async fn is_ended(&self, token: &SessionToken) -> bool {
        matches!(self.accounts.session(token, ADDRESS).await, Err(SessionError::Ended))
    }

    pub(crate) async fn end(
        &self,
        person: PersonId,
        is_erased: bool,
    ) -> Result<(), AccountRefusal> {
        let done = self.accounts.end_person(&self.local, &request(), person, is_erased).await;
        done.map(drop).map_err(refusal)
    }

    pub(crate) async fn end_grant(
        &self,
        by: &Principal,
        person: PersonId,
        authority: Authority,
    ) -> Result<(), AccountRefusal> {
        let done = self.accounts.end_grant(by, &request(), person, authority).await;
        done.map(drop).map_err(refusal)
    }

    /// Gives up a person's password, and makes another link.
    pub(crate) async fn renew_link(&self, person: PersonId) {
        self.accounts.renew_link(&self.local, &request(), person).await.unwrap();
    }

    async fn state(&self, person: PersonId) -> PersonState {
        self.accounts.person(&self.local, person).await.unwrap().state()
    }
}

/// A browser at the operators' listener, on this host of a network.
pub(crate) fn origin(host: u8, mark: Option<&BrowserToken>) -> SignInOrigin {
    let address = IpAddr::from([192, 0, 2, host]);
    SignInOrigin { address, listener: Listener::Operators, mark: mark.cloned() }
}

pub(crate) fn request() -> Request {
    Request::new(sample::fresh(), &[b"a request of these tests"], None)
}

pub(crate) fn password() -> Password {
    "correct horse battery".parse().unwrap()
}

pub(crate) fn refusal(error: AccountsError) -> AccountRefusal {
    let refused = if let AccountsError::Refused(refusal) = error { Some(refusal) } else { None };
    refused.unwrap()
}

pub(crate) const fn admin_of(wallet: WalletId) -> Authority {
    Authority { role: Role::HolderAdmin, reach: Reach::Wallet(wallet) }
}

pub(crate) const fn viewer_of(wallet: WalletId) -> Authority {
    Authority { role: Role::HolderViewer, reach: Reach::Wallet(wallet) }
}

async fn an_invitation_gives_one_role_to_whoever_sets_a_password(home: &impl Home) {
    let desk = Desk::of(home).await;
    let (person, link) = desk.invite(&desk.local, "Ada@Example.com", OWNER).await.unwrap();
    for _look in 0..2 {
        let view = desk.accounts.look_at_link(&link).await.unwrap();
        assert_eq!(view.purpose, LinkPurpose::Accept(OWNER));
        assert!(!view.requires_sign_in);
    }
    assert_eq!(desk.state(person).await, PersonState::Pending);
    // In another process: a failure slows down.
    let early = Desk::of(home).await.sign_in("ada@example.com").await;
    assert!(matches!(early, Err(SignInError::Wrong)));
    let missing = desk.accounts.accept_link(&link, None, None).await;
    assert!(matches!(missing, Err(LinkError::PasswordMissing)));
    let used = desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    assert_eq!(used.person, person);
    for _again in 0..2 {
        let again = desk.accounts.accept_link(&link, Some(&password()), None).await;
        assert!(matches!(again, Err(LinkError::NotValid)), "it is used once");
    }
    assert!(matches!(desk.accounts.look_at_link(&link).await, Err(LinkError::NotValid)));
    assert_eq!(desk.state(person).await, PersonState::Active);

    let (token, signed_in) = desk.sign_in(" ADA@example.com").await.unwrap();
    assert_eq!((signed_in.person.id, signed_in.session.authority), (person, OWNER));
    assert!(signed_in.is_fresh(signed_in.now) && signed_in.principal.role == Role::Owner);
    assert!(!desk.is_ended(&token).await);
    desk.accounts.sign_out(&signed_in).await.unwrap();
    assert!(desk.is_ended(&token).await);
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn nothing_private_stands_in_the_trail_or_in_the_clear(home: &impl Home) {
    let desk = Desk::of(home).await;
    let (person, link) = desk.invite(&desk.local, "ada@example.com", OWNER).await.unwrap();
    desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    owner_key(home.store(), "the next owner").await;
    desk.end(person, true).await.unwrap();
    let mut raw = Raw::open(home).await;
    for (table, column) in [("audit", "changes"), ("audit", "actor"), ("admin_requests", "things")]
    {
        // The name holds letters that no id in hexadecimal spells.
        for word in ["example", "Lovelace", "argon2", "horse", &link.expose()] {
            let sql = format!("SELECT count(*) FROM {table} WHERE {column} LIKE '%{word}%'");
            assert_eq!(raw.number(&sql).await, 0, "{word} in {table}.{column}");
        }
    }
    assert_eq!(raw.number("SELECT count(*) FROM audit WHERE use_case LIKE 'person.%'").await, 3);
    let kept = "SELECT count(*) FROM people WHERE email IS NOT NULL OR name IS NOT NULL";
    assert_eq!(raw.number(kept).await, 0, "erased");
    for table in ["person_grants", "person_links", "person_passwords", "sessions"] {
        assert_eq!(raw.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    assert_eq!(desk.state(person).await, PersonState::Ended);
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
    // Their address is free, and whoever comes with it is somebody else.
    let (next, _link) = desk.invite(&desk.local, "ada@example.com", OWNER).await.unwrap();
    assert_ne!(next, person);
    desk.end(person, false).await.unwrap();
    let renewed = desk.accounts.renew_link(&desk.local, &request(), person).await;
    assert_eq!(renewed.map_err(refusal).unwrap_err(), AccountRefusal::PersonEnded);
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn whoever_has_a_password_accepts_signed_in_and_chooses_among_roles(home: &impl Home) {
    let desk = Desk::of(home).await;
    let wallet = make_wallet(home.store(), "acme").await;
    let person = desk.member("ada@example.com", viewer_of(wallet)).await;
    let other = desk.member("bob@example.com", viewer_of(wallet)).await;
    let (same, link) = desk.invite(&desk.local, "ada@example.com", admin_of(wallet)).await.unwrap();
    assert_eq!(same, person);
    for signed_in in [None, Some(other)] {
        let refused = desk.accounts.accept_link(&link, Some(&password()), signed_in).await;
        assert!(matches!(refused, Err(LinkError::SignInFirst)), "{signed_in:?}");
    }
    desk.accounts.accept_link(&link, None, Some(person)).await.unwrap();
    let (token, signed_in) = desk.sign_in("ada@example.com").await.unwrap();
    assert_eq!(signed_in.grants.len(), 2);
    assert_eq!(signed_in.session.authority, admin_of(wallet), "the broadest one");
    let before = token;
    let token = desk.accounts.choose_grant(&signed_in, viewer_of(wallet)).await.unwrap();
    assert!(desk.is_ended(&before).await, "another role, another token");
    let none = desk.accounts.choose_grant(&signed_in, OWNER).await;
    assert!(matches!(none, Err(AccountsError::NotFound(_))));
    let signed_in = desk.accounts.session(&token, ADDRESS).await.unwrap();
    assert_eq!(signed_in.principal.role, Role::HolderViewer);
    // The role that is in use ends, and with it the session.
    let (elsewhere, _) = desk.sign_in("ada@example.com").await.unwrap();
    desk.end_grant(&desk.local, person, viewer_of(wallet)).await.unwrap();
    assert!(desk.is_ended(&token).await && !desk.is_ended(&elsewhere).await);
    // The last one ends, and with it the password: nothing is left that a link could take over.
    desk.end_grant(&desk.local, person, admin_of(wallet)).await.unwrap();
    assert!(desk.is_ended(&elsewhere).await);
    assert_eq!(desk.state(person).await, PersonState::Pending);
    let (_same, link) = desk.invite(&desk.local, "ada@example.com", OWNER).await.unwrap();
    desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn a_repeated_invitation_after_erasure_is_refused_and_done_no_more(home: &impl Home) {
    let desk = Desk::of(home).await;
    // As a door digests it: nothing of the address is in there.
    let request = Request::new(sample::fresh(), &[b"POST", b"/people", b"support"], None);
    let invite = async |email: &str| {
        let (email, reach) = (email.parse().unwrap(), Reach::All);
        let new = NewInvitation { email, name: None, role: Role::Support, reach };
        desk.accounts.invite_person(&desk.local, &request, &new).await
    };
    let first = invite("ada@example.com").await.unwrap();
    let again = invite("ada@example.com").await.unwrap();
    assert_eq!((again.replayed, again.thing.person), (true, first.thing.person));
    let other = refusal(invite("bob@example.com").await.unwrap_err());
    assert_eq!(other, AccountRefusal::RequestKeyConflict, "another address is another request");
    desk.end(first.thing.person, false).await.unwrap();
    assert!(invite("ada@example.com").await.unwrap().replayed, "what was done is known");
    desk.end(first.thing.person, true).await.unwrap();
    for email in ["ada@example.com", "bob@example.com"] {
        let refused = refusal(invite(email).await.unwrap_err());
        assert_eq!(refused, AccountRefusal::PersonEnded, "nobody is invited anew by it: {email}");
    }
    let mut raw = Raw::open(home).await;
    assert_eq!(raw.number("SELECT count(*) FROM people").await, 1);
    let rows = "SELECT count(*) FROM people WHERE email IS NOT NULL OR name IS NOT NULL";
    assert_eq!(raw.number(rows).await, 0);
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn an_invitation_ends_with_what_its_maker_may_give(home: &impl Home) {
    let desk = Desk::of(home).await;
    let wallet = make_wallet(home.store(), "acme").await;
    let admin = desk.member("admin@example.com", admin_of(wallet)).await;
    let by = Principal::of_person(admin, admin_of(wallet), None);
    let accept =
        async |link: &LinkToken| desk.accounts.accept_link(link, Some(&password()), None).await;
    let (_ada, kept) = desk.invite(&by, "ada@example.com", viewer_of(wallet)).await.unwrap();
    let (_bob, left) = desk.invite(&by, "bob@example.com", viewer_of(wallet)).await.unwrap();
    accept(&kept).await.unwrap();
    desk.end_grant(&desk.local, admin, admin_of(wallet)).await.unwrap();
    assert!(matches!(accept(&left).await, Err(LinkError::NotValid)), "the role was lost");
    let admin = desk.member("admin@example.com", admin_of(wallet)).await;
    accept(&left).await.unwrap();
    let (_eve, last) = desk.invite(&by, "eve@example.com", viewer_of(wallet)).await.unwrap();
    desk.end(admin, false).await.unwrap();
    assert!(matches!(accept(&last).await, Err(LinkError::NotValid)), "the maker has ended");
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn the_last_owner_stays_be_it_a_key_or_a_person(home: &impl Home) {
    let desk = Desk::of(home).await;
    let store = home.store();
    let last = Err(AccountRefusal::LastOwner);
    let key = owner_key(store, "first").await;
    // Whoever was invited only is nobody's successor.
    let (person, link) = desk.invite(&desk.local, "ada@example.com", OWNER).await.unwrap();
    let revoke = AccountAction::AdminKey(AdminKeyAction::Revoke(key));
    assert_eq!(act(store, revoke.clone()).await.map(drop), last);
    desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    act(store, revoke).await.unwrap();
    assert_eq!(desk.end(person, false).await, last);
    assert_eq!(desk.end_grant(&desk.local, person, OWNER).await, last);
    let next = owner_key(store, "second").await;
    desk.end_grant(&desk.local, person, OWNER).await.unwrap();
    assert_eq!(
        act(store, AccountAction::AdminKey(AdminKeyAction::Revoke(next))).await.map(drop),
        last
    );
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn a_lost_password_is_given_up_by_whoever_gives_all_that_the_person_has(home: &impl Home) {
    let desk = Desk::of(home).await;
    let store = home.store();
    let [acme, other] = [make_wallet(store, "acme").await, make_wallet(store, "other").await];
    desk.member("boss@example.com", admin_of(acme)).await;
    let (_token, boss) = desk.sign_in("boss@example.com").await.unwrap();
    let boss = boss.principal;
    let ada = desk.member("ada@example.com", viewer_of(acme)).await;
    let (token, _) = desk.sign_in("ada@example.com").await.unwrap();
    let renew = async |by: &Principal, person| {
        let told = desk.accounts.renew_link(by, &request(), person).await?;
        Ok::<_, AccountsError>(told.thing.link.unwrap())
    };
    let link = renew(&boss, ada).await.unwrap();
    assert!(desk.is_ended(&token).await);
    assert!(matches!(desk.sign_in("ada@example.com").await, Err(SignInError::Wrong)));
    // As long as the password is lost, no invitation is a way around that link.
    let around = desk.invite(&boss, "ada@example.com", admin_of(acme)).await;
    assert_eq!(around.map_err(refusal).unwrap_err(), AccountRefusal::PersonHasLink);
    let second = renew(&boss, ada).await.unwrap();
    assert!(matches!(desk.accounts.look_at_link(&link).await, Err(LinkError::NotValid)));
    desk.accounts.accept_link(&second, Some(&password()), None).await.unwrap();
    // An offer elsewhere is neither judged by nor a way around the link.
    let (_, link) = desk.invite(&desk.local, "ada@example.com", viewer_of(other)).await.unwrap();
    let third = renew(&boss, ada).await.unwrap();
    let around = desk.accounts.accept_link(&link, Some(&password()), None).await;
    assert!(matches!(around, Err(LinkError::SignInFirst)), "{around:?}");
    desk.accounts.accept_link(&third, Some(&password()), None).await.unwrap();
    // A role elsewhere, and an owner's, are beyond them.
    desk.accounts.accept_link(&link, None, Some(ada)).await.unwrap();
    let refused = renew(&boss, ada).await;
    assert_eq!(refused.map_err(refusal).unwrap_err(), AccountRefusal::BeyondGrantor);
    let owner = desk.member("owner@example.com", OWNER).await;
    let (_token, signed_in) = desk.sign_in("owner@example.com").await.unwrap();
    let refused = renew(&signed_in.principal, owner).await;
    assert_eq!(refused.map_err(refusal).unwrap_err(), AccountRefusal::BeyondGrantor);
    renew(&desk.local, owner).await.unwrap();
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn a_holders_administrator_sees_and_ends_what_is_of_the_wallet_alone(home: &impl Home) {
    let desk = Desk::of(home).await;
    let store = home.store();
    let [acme, other] = [make_wallet(store, "acme").await, make_wallet(store, "other").await];
    let boss = desk.member("boss@example.com", admin_of(acme)).await;
    let boss = Principal::of_person(boss, admin_of(acme), None);
    let stranger = desk.member("stranger@example.com", viewer_of(other)).await;
    let found = |error| matches!(error, AccountsError::NotFound(_));
    assert!(desk.accounts.person(&boss, stranger).await.is_err_and(found));
    let ended = desk.accounts.end_grant(&boss, &request(), stranger, viewer_of(acme)).await;
    assert!(ended.is_err_and(found));
    for beyond in [OWNER, viewer_of(other)] {
        assert!(desk.invite(&boss, "ada@example.com", beyond).await.is_err());
    }
    // An offer elsewhere stays, and does not exist for them.
    let (ada, _) = desk.invite(&desk.local, "ada@example.com", viewer_of(other)).await.unwrap();
    assert!(desk.accounts.person(&boss, ada).await.is_err_and(found));
    let (bob, _) = desk.invite(&boss, "bob@example.com", viewer_of(acme)).await.unwrap();
    let (all, page) = (PersonFilter::default(), PageRequest::first(Order::Oldest, 10));
    let seen = desk.accounts.people(&boss, all, page).await.unwrap().rows;
    assert_eq!(seen.iter().map(|it| it.person.id).collect::<Vec<_>>().len(), 2);
    assert_eq!(seen[1].person.id, bob, "who is offered something is seen too");
    assert_eq!(desk.accounts.people(&desk.local, all, page).await.unwrap().rows.len(), 4);
    let whole = desk.accounts.end_person(&boss, &request(), bob, false).await;
    assert!(matches!(whole, Err(AccountsError::Forbidden { .. })));
    let once = request();
    for is_again in [false, true] {
        let ended = desk.accounts.end_grant(&boss, &once, bob, viewer_of(acme)).await.unwrap();
        assert_eq!(ended.replayed, is_again);
    }
    assert!(desk.accounts.person(&boss, bob).await.is_err_and(found));
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn people_are_listed_by_wallet_role_and_state(home: &impl Home) {
    let desk = Desk::of(home).await;
    let store = home.store();
    let [acme, other] = [make_wallet(store, "acme").await, make_wallet(store, "other").await];
    let owner = desk.member("owner@example.com", OWNER).await;
    let boss = desk.member("boss@example.com", admin_of(acme)).await;
    let viewer = desk.member("viewer@example.com", viewer_of(other)).await;
    let (bob, _) = desk.invite(&desk.local, "bob@example.com", viewer_of(acme)).await.unwrap();
    let gone = desk.member("gone@example.com", viewer_of(acme)).await;
    desk.accounts.end_person(&desk.local, &request(), gone, false).await.unwrap();
    let page = PageRequest::first(Order::Oldest, 10);
    let listed = async |by: &Principal, filter| -> Vec<PersonId> {
        let found = desk.accounts.people(by, filter, page).await.unwrap();
        found.rows.iter().map(|record| record.person.id).collect()
    };
    let filter = |wallet, role, state| PersonFilter { wallet, role, state, seen_from: None };
    let (viewers, local) = (Some(Role::HolderViewer), &desk.local);
    for (asked, expected) in [
        (filter(Some(acme), None, None), vec![boss, bob]),
        (filter(None, viewers, None), vec![viewer, bob]),
        (filter(Some(acme), viewers, None), vec![bob]),
        (filter(Some(other), Some(Role::HolderAdmin), None), vec![]),
        (filter(None, None, Some(PersonState::Pending)), vec![bob]),
        (filter(None, None, Some(PersonState::Active)), vec![owner, boss, viewer]),
        (filter(None, None, Some(PersonState::Ended)), vec![gone]),
        (filter(None, viewers, Some(PersonState::Active)), vec![viewer]),
    ] {
        assert_eq!(listed(local, asked).await, expected, "{asked:?}");
    }
    // A filter widens nobody's reach.
    let boss_of_acme = Principal::of_person(boss, admin_of(acme), None);
    assert_eq!(listed(&boss_of_acme, filter(None, None, None)).await, [boss, bob]);
    assert_eq!(listed(&boss_of_acme, filter(Some(other), None, None)).await, []);
}

async fn the_first_owner_has_a_link_until_there_is_one(home: &impl Home) {
    let desk = Desk::of(home).await;
    let first = desk.accounts.first_owner_link().await.unwrap().unwrap();
    let link = desk.accounts.first_owner_link().await.unwrap().unwrap();
    assert!(matches!(desk.accounts.look_at_link(&first).await, Err(LinkError::NotValid)));
    let view = desk.accounts.look_at_link(&link).await.unwrap();
    assert_eq!((view.purpose, view.email), (LinkPurpose::FirstOwner, None));
    let email = "ada@example.com".parse().unwrap();
    let by_the_other_way = desk.accounts.accept_link(&link, Some(&password()), None).await;
    assert!(matches!(by_the_other_way, Err(LinkError::NotValid)));
    let owner = desk.accounts.accept_first_owner(&link, &email, None, &password()).await.unwrap();
    let again = desk.accounts.accept_first_owner(&link, &email, None, &password()).await;
    assert!(matches!(again, Err(LinkError::NotValid)));
    let (_token, signed_in) = desk.sign_in("ada@example.com").await.unwrap();
    assert_eq!((signed_in.person.id, signed_in.session.authority), (owner.person, OWNER));
    assert!(desk.accounts.first_owner_link().await.unwrap().is_none());
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn the_link_of_the_first_owner_gives_nothing_once_there_is_one(home: &impl Home) {
    let desk = Desk::of(home).await;
    let link = desk.accounts.first_owner_link().await.unwrap().unwrap();
    owner_key(home.store(), "first").await;
    let email = "ada@example.com".parse().unwrap();
    let late = desk.accounts.accept_first_owner(&link, &email, None, &password()).await;
    assert!(matches!(late, Err(LinkError::NotValid)));
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

on_every_store! {
    an_invitation_gives_one_role_to_whoever_sets_a_password,
    nothing_private_stands_in_the_trail_or_in_the_clear,
    whoever_has_a_password_accepts_signed_in_and_chooses_among_roles,
    a_repeated_invitation_after_erasure_is_refused_and_done_no_more,
    an_invitation_ends_with_what_its_maker_may_give,
    the_last_owner_stays_be_it_a_key_or_a_person,
    a_lost_password_is_given_up_by_whoever_gives_all_that_the_person_has,
    a_holders_administrator_sees_and_ends_what_is_of_the_wallet_alone,
    people_are_listed_by_wallet_role_and_state,
    the_first_owner_has_a_link_until_there_is_one,
    the_link_of_the_first_owner_gives_nothing_once_there_is_one,
}

//! Tables of changes of people: each row is a person, an event, and its writes or its refusal.
//!
//! The judgement alone runs here, over facts in memory ([`Book`]); that a database writes an effect as it is, is the
//! contract's to test. Writes are compared by their names, in the order in which a store makes them.
//!
//! The bounds themselves are tested: a link that expires at `NOW` is not open.

use std::time::Duration;

use crate::admin::actions::tests::{Book, judged};
use crate::admin::{
    AccountAction, AccountCommand, AccountRefusal as Refusal, AccountWrite, ActorId, Authority,
    EndedSessions, LinkPurpose, NewLink, PasswordHash, Person, PersonAction, PersonGrant,
    PersonLink, PersonRecord, PersonWrite, Reach, RequestBinding, Role, WalletBounds,
};
use crate::secret::TokenHash;
use crate::{AdminKeyId, CommandKey, LinkId, PersonId, SessionId, Timestamp, WalletId};

const NOW: Timestamp = Timestamp::from_micros(1_000);
const ID: PersonId = PersonId::from_u128(1);
const MAKER: ActorId = ActorId::Person(PersonId::from_u128(2));
const OWNER: Authority = Authority { role: Role::Owner, reach: Reach::All };
const SUPPORT: Authority = Authority { role: Role::Support, reach: Reach::All };
const WALLET: Reach = Reach::Wallet(WalletId::from_u128(3));
const ADMIN: Authority = Authority { role: Role::HolderAdmin, reach: WALLET };
const VIEWER: Authority = Authority { role: Role::HolderViewer, reach: WALLET };
const ELSEWHERE: Authority =
    Authority { role: Role::HolderAdmin, reach: Reach::Wallet(WalletId::from_u128(4)) };

/// Writes of an effect by their names, or the refusal.
type ExpectedVerdict = Result<&'static [&'static str], Refusal>;

fn somebody() -> PersonRecord {
    let person = Person {
        id: ID,
        email: "ada@example.com".parse().ok(),
        name: None,
        created_at: Timestamp::from_micros(1),
        created_by: ActorId::Local,
        ended_at: None,
    };
    PersonRecord {
        person,
        grants: Vec::new(),
        has_password: false,
        links: Vec::new(),
        invitations: Vec::new(),
    }
}

/// A person with these authorities, who can sign in.
fn member(authorities: &[Authority]) -> PersonRecord {
    let grant = |authority: &Authority| PersonGrant {
        authority: *authority,
        granted_at: Timestamp::from_micros(2),
        granted_by: ActorId::Local,
    };
    let grants = authorities.iter().map(grant).collect();
    PersonRecord { grants, has_password: true, ..somebody() }
}

/// A person with these authorities whose password was given up.
fn lost(authorities: &[Authority]) -> PersonRecord {
    PersonRecord { has_password: false, ..member(authorities) }
}

/// The same with an open link by another person.
fn linked(record: PersonRecord, purpose: LinkPurpose) -> PersonRecord {
    linked_by(record, purpose, MAKER)
}

fn linked_by(record: PersonRecord, purpose: LinkPurpose, created_by: ActorId) -> PersonRecord {
    let (id, expires_at) = (LinkId::from_u128(9), Timestamp::from_micros(1_001));
    let reach = purpose.authority().map_or(Reach::All, |authority| authority.reach);
    let link = PersonLink { id, person: ID, reach, purpose, expires_at, used_at: None, created_by };
    PersonRecord { links: vec![link], ..record }
}

fn ended(record: PersonRecord) -> PersonRecord {
    let person = Person { ended_at: Some(Timestamp::from_micros(9)), ..record.person };
    PersonRecord { person, ..record }
}

fn new_link() -> NewLink {
    let token = TokenHash::from_bytes([7; 32]);
    NewLink { id: LinkId::from_u128(10), token, lifetime: Duration::from_secs(1) }
}

fn hash(text: &str) -> PasswordHash {
    PasswordHash::new(text.to_owned())
}

fn invite(offered: Authority, grantor: Authority) -> PersonAction {
    let new = somebody().person;
    let email = "ada@example.com".parse().unwrap();
    PersonAction::Invite { new, email, offered, grantor, link: new_link() }
}

fn renew(grantor: Authority) -> PersonAction {
    PersonAction::RenewLink { person: ID, grantor, link: new_link() }
}

fn accept(made_by: ActorId, password: Option<&str>, is_signed_in: bool) -> PersonAction {
    let link = LinkId::from_u128(9);
    PersonAction::Accept { person: ID, link, made_by, password: password.map(hash), is_signed_in }
}

fn end_grant(authority: Authority, grantor: Authority) -> PersonAction {
    PersonAction::EndGrant { person: ID, authority, grantor }
}

const fn end(is_erased: bool) -> PersonAction {
    PersonAction::End { person: ID, is_erased }
}

const fn label(write: &PersonWrite) -> &'static str {
    match write {
        PersonWrite::Insert(_) => "insert",
        PersonWrite::Update(_) => "update",
        PersonWrite::PutPassword(..) => "put password",
        PersonWrite::DeletePassword(_) => "delete password",
        PersonWrite::InsertGrant(..) => "insert grant",
        PersonWrite::DeleteGrant(..) => "delete grant",
        PersonWrite::DeleteGrants(_) => "delete grants",
        PersonWrite::PutLink(..) => "put link",
        PersonWrite::UseLink(..) => "use link",
        PersonWrite::DeleteLink(_) => "delete link",
        PersonWrite::DeleteLinks(_) => "delete links",
        PersonWrite::PutInvitation(..) => "put invitation",
        PersonWrite::DeleteInvitation(..) => "delete invitation",
        PersonWrite::EraseInvitations(_) => "erase invitations",
        PersonWrite::EndSessions(_, EndedSessions::All) => "end sessions",
        PersonWrite::EndSessions(_, EndedSessions::Except(_)) => "end other sessions",
        PersonWrite::EndSessions(_, EndedSessions::Using(_)) => "end its sessions",
        PersonWrite::RenewSession(..) => "renew session",
    }
}

fn facts(record: Option<PersonRecord>) -> Book {
    Book { person: record, ..Book::at(NOW) }
}

/// Judges by one of the actors, and compares.
#[track_caller]
fn check_by(actor: ActorId, facts: &Book, action: PersonAction, expected: ExpectedVerdict) {
    let request =
        RequestBinding { key: CommandKey::from_u128(5), digest: [6; 32], canonical: None };
    let command = AccountCommand {
        is_after_restore: false,
        bounds: WalletBounds::DEFAULT,
        actor,
        address: None,
        request,
        reason: None,
        action: AccountAction::Person(action),
    };
    let judged = judged(&command, facts).map(|effect| {
        let person = |write: &AccountWrite| {
            if let AccountWrite::Person(write) = write { Some(label(write)) } else { None }
        };
        effect.writes.iter().filter_map(person).collect::<Vec<_>>()
    });
    assert_eq!(judged, expected.map(<[_]>::to_vec), "{facts:?}");
}

#[track_caller]
fn check(record: Option<PersonRecord>, action: PersonAction, expected: ExpectedVerdict) {
    check_by(MAKER, &facts(record), action, expected);
}

#[test]
fn an_invitation_takes_no_place_that_is_not_its_own() {
    let offers = LinkPurpose::Accept;
    let lost = || lost(&[SUPPORT]);
    check(None, invite(SUPPORT, OWNER), Ok(&["insert", "put link"]));
    check(Some(somebody()), invite(SUPPORT, OWNER), Ok(&["put link"]));
    check(Some(member(&[SUPPORT])), invite(SUPPORT, OWNER), Ok(&[]));
    let put: ExpectedVerdict = Ok(&["put link", "put invitation"]);
    check(Some(member(&[SUPPORT])), invite(VIEWER, ADMIN), put.clone());
    // A password that was given up elsewhere is not the wallet's to know.
    check(Some(lost()), invite(VIEWER, ADMIN), put.clone());
    check(Some(lost()), invite(OWNER, OWNER), Err(Refusal::PersonHasLink));
    for (open, grantor) in [
        (offers(VIEWER), ADMIN),
        (offers(SUPPORT), ADMIN),
        (offers(ELSEWHERE), ADMIN),
        (offers(ELSEWHERE), OWNER),
        (LinkPurpose::SetPassword, OWNER),
    ] {
        check(Some(linked(somebody(), open)), invite(VIEWER, grantor), put.clone());
    }
    // Within one reach an offer stays, unless its grantor could be this one.
    let offered = |authority| Some(linked(somebody(), offers(authority)));
    check(offered(OWNER), invite(SUPPORT, SUPPORT), Err(Refusal::PersonHasLink));
    check(offered(SUPPORT), invite(SUPPORT, OWNER), Ok(&["put link"]));
    check(offered(ADMIN), invite(VIEWER, VIEWER), Err(Refusal::PersonHasLink));
}

#[test]
fn a_link_is_renewed_by_whoever_could_give_all_of_it() {
    let offered = |authority| linked(somebody(), LinkPurpose::Accept(authority));
    let again: ExpectedVerdict = Ok(&["delete password", "end sessions", "put link"]);
    for (record, grantor, expected) in [
        (somebody(), OWNER, Err(Refusal::NothingOffered)),
        (linked(somebody(), LinkPurpose::FirstOwner), OWNER, Err(Refusal::NothingOffered)),
        (offered(SUPPORT), OWNER, Ok(&["put link"][..])),
        (offered(SUPPORT), ADMIN, Err(Refusal::NothingOffered)),
        (offered(ADMIN), VIEWER, Err(Refusal::BeyondGrantor)),
        (member(&[VIEWER]), ADMIN, again.clone()),
        (member(&[VIEWER, ELSEWHERE]), ADMIN, Err(Refusal::BeyondGrantor)),
        (member(&[OWNER]), OWNER, Err(Refusal::BeyondGrantor)),
        // An offer elsewhere is neither judged by nor taken away.
        (linked(member(&[VIEWER]), LinkPurpose::Accept(ELSEWHERE)), ADMIN, again.clone()),
        (linked(member(&[ELSEWHERE]), LinkPurpose::Accept(VIEWER)), ADMIN, Ok(&["put link"][..])),
        (member(&[ELSEWHERE]), ADMIN, Err(Refusal::NothingOffered)),
        (ended(member(&[VIEWER])), OWNER, Err(Refusal::PersonEnded)),
    ] {
        check(Some(record), renew(grantor), expected);
    }
    check(None, renew(OWNER), Err(Refusal::NoPerson));
    check_by(ActorId::Local, &facts(Some(member(&[OWNER]))), renew(OWNER), again);
}

#[test]
fn a_password_or_a_newer_link_ends_the_links_of_all_reaches_that_set_one() {
    let link = |id, reach, purpose| PersonLink {
        id: LinkId::from_u128(id),
        person: ID,
        reach,
        purpose,
        expires_at: Timestamp::from_micros(1_001),
        used_at: None,
        created_by: ActorId::Local,
    };
    let sets = LinkPurpose::SetPassword;
    let record = || PersonRecord {
        links: vec![
            link(9, Reach::All, sets),
            link(11, WALLET, sets),
            link(12, ELSEWHERE.reach, LinkPurpose::Accept(ELSEWHERE)),
        ],
        ..lost(&[VIEWER])
    };
    let again: ExpectedVerdict =
        Ok(&["delete password", "end sessions", "delete link", "put link"]);
    check(Some(record()), renew(ADMIN), again.clone());
    check(Some(record()), renew(OWNER), again);
    let used: ExpectedVerdict = Ok(&["use link", "put password", "delete link"]);
    check(Some(record()), accept(ActorId::Local, Some("secret"), false), used);
    let change = PersonAction::ChangePassword {
        person: ID,
        old: hash("old"),
        new: hash("new"),
        kept: (SessionId::from_u128(1), TokenHash::from_bytes([1; 32])),
    };
    let mut facts = facts(Some(PersonRecord { has_password: true, ..record() }));
    facts.password = Some(hash("old"));
    let changed: ExpectedVerdict =
        Ok(&["put password", "end other sessions", "renew session", "delete link", "delete link"]);
    check_by(ActorId::Person(ID), &facts, change, changed);
}

#[test]
fn a_link_is_worth_what_its_maker_may_give_as_it_is_used() {
    let taken: ExpectedVerdict = Ok(&["use link", "insert grant", "put password"]);
    let offered = LinkPurpose::Accept(VIEWER);
    let lost = PersonRecord { has_password: false, ..member(&[VIEWER, ELSEWHERE]) };
    let key = ActorId::AdminKey(AdminKeyId::from_u128(2));
    for (purpose, by, maker, expected) in [
        (offered, MAKER, &[OWNER][..], taken.clone()),
        (offered, MAKER, &[SUPPORT, ADMIN], taken.clone()),
        (offered, MAKER, &[], Err(Refusal::NoLink)),
        (offered, MAKER, &[ELSEWHERE, VIEWER, SUPPORT], Err(Refusal::NoLink)),
        (offered, key, &[ADMIN], taken.clone()),
        (offered, key, &[], Err(Refusal::NoLink)),
        (offered, ActorId::Local, &[], taken),
        (LinkPurpose::SetPassword, MAKER, &[OWNER], Ok(&["use link", "put password"])),
        (LinkPurpose::SetPassword, MAKER, &[ADMIN], Err(Refusal::NoLink)),
        (LinkPurpose::SetPassword, ActorId::Local, &[], Ok(&["use link", "put password"])),
    ] {
        let whom = if purpose == LinkPurpose::SetPassword { lost.clone() } else { somebody() };
        let mut facts = facts(Some(linked_by(whom, purpose, by)));
        facts.maker = maker.to_vec();
        check_by(ActorId::Person(ID), &facts, accept(by, Some("secret"), false), expected);
    }
    // Facts of somebody else are no facts of its maker.
    let mut facts = facts(Some(linked(somebody(), offered)));
    facts.maker = vec![OWNER];
    check_by(key, &facts, accept(key, Some("secret"), false), Err(Refusal::NoLink));
}

#[test]
fn a_link_takes_over_nobody() {
    let open = |record| linked_by(record, LinkPurpose::Accept(VIEWER), ActorId::Local);
    let by = |password, is_signed_in| accept(ActorId::Local, password, is_signed_in);
    for (record, action, expected) in [
        (open(somebody()), by(None, false), Err(Refusal::PasswordMissing)),
        (open(member(&[SUPPORT])), by(Some("secret"), false), Err(Refusal::SignInFirst)),
        (open(member(&[SUPPORT])), by(Some("secret"), true), Ok(&["use link", "insert grant"][..])),
        (open(member(&[VIEWER])), by(None, true), Ok(&["use link"])),
        (open(lost(&[SUPPORT])), by(Some("secret"), false), Err(Refusal::SignInFirst)),
        (open(lost(&[VIEWER])), by(Some("secret"), false), Err(Refusal::SignInFirst)),
        (somebody(), by(Some("secret"), false), Err(Refusal::NoLink)),
        (ended(open(somebody())), by(Some("secret"), false), Err(Refusal::PersonEnded)),
        (
            linked_by(somebody(), LinkPurpose::FirstOwner, ActorId::Local),
            by(Some("secret"), false),
            Err(Refusal::NoLink),
        ),
    ] {
        check(Some(record), action, expected);
    }
    let mut used = open(somebody());
    used.links[0].used_at = Some(NOW);
    check(Some(used), by(Some("secret"), false), Err(Refusal::NoLink));
    let mut late = open(somebody());
    late.links[0].expires_at = NOW;
    check(Some(late), by(Some("secret"), false), Err(Refusal::NoLink));
}

#[test]
fn there_is_one_first_owner() {
    let action = || PersonAction::AcceptFirstOwner {
        person: ID,
        link: LinkId::from_u128(9),
        email: "ada@example.com".parse().unwrap(),
        name: None,
        password: hash("secret"),
    };
    let record = linked_by(somebody(), LinkPurpose::FirstOwner, ActorId::Local);
    let taken: ExpectedVerdict = Ok(&["update", "use link", "insert grant", "put password"]);
    check(Some(record.clone()), action(), taken);
    let mut facts = facts(Some(record));
    facts.is_email_taken = true;
    check_by(ActorId::Person(ID), &facts, action(), Err(Refusal::EmailTaken));
    facts.owners.all = 1;
    check_by(ActorId::Person(ID), &facts, action(), Err(Refusal::NoLink));
    let first = PersonAction::InviteFirstOwner { new: somebody().person, link: new_link() };
    check_by(ActorId::Local, &facts, first, Err(Refusal::OwnerExists));
}

#[test]
fn whoever_has_nothing_left_has_no_password() {
    let offered = || linked(member(&[VIEWER]), LinkPurpose::Accept(SUPPORT));
    let reset = PersonRecord { has_password: false, ..member(&[VIEWER]) };
    let reset = linked(reset, LinkPurpose::SetPassword);
    let all = [
        "delete grant",
        "end its sessions",
        "delete password",
        "end sessions",
        "delete link",
        "delete invitation",
    ];
    let gone = || Ok(&["delete grant", "end its sessions", "delete invitation"][..]);
    let last = [&all[..4], &all[5..]].concat();
    let both = linked(member(&[VIEWER, SUPPORT]), LinkPurpose::Accept(ADMIN));
    for (record, authority, grantor, expected) in [
        (member(&[VIEWER, SUPPORT]), VIEWER, ADMIN, gone()),
        (member(&[VIEWER, ADMIN]), VIEWER, ADMIN, Ok(&all[..2])),
        (both.clone(), VIEWER, ADMIN, Ok(&all[..2])),
        (both, ADMIN, ADMIN, Ok(&all[4..5])),
        (linked(somebody(), LinkPurpose::Accept(VIEWER)), VIEWER, ADMIN, Ok(&all[4..])),
        (member(&[VIEWER]), VIEWER, ADMIN, Ok(&last[..])),
        (reset, VIEWER, ADMIN, Ok(&all[..])),
        (offered(), SUPPORT, OWNER, Ok(&all[4..5])),
        (offered(), VIEWER, ADMIN, Ok(&last[..])),
        (member(&[SUPPORT]), SUPPORT, ADMIN, Err(Refusal::BeyondGrantor)),
        (member(&[SUPPORT]), VIEWER, OWNER, Ok(&[][..])),
        (member(&[OWNER]), OWNER, OWNER, Err(Refusal::LastOwner)),
        (ended(member(&[VIEWER])), VIEWER, OWNER, Err(Refusal::PersonEnded)),
    ] {
        let expected = expected.map(|all| &*Box::leak(all.to_vec().into_boxed_slice()));
        check(Some(record), end_grant(authority, grantor), expected);
    }
    let mut facts = facts(Some(member(&[OWNER, SUPPORT])));
    facts.owners.lasting = 1;
    let kept: ExpectedVerdict = Ok(&["delete grant", "end its sessions"]);
    check_by(MAKER, &facts, end_grant(OWNER, OWNER), kept);
}

#[test]
fn an_end_is_for_good_and_can_be_erased_later() {
    let all = ["update", "delete grants", "delete password", "delete links", "end sessions"];
    let all: ExpectedVerdict = Ok(Box::leak(Box::new(all)));
    let erased_too = [
        "update",
        "delete grants",
        "delete password",
        "delete links",
        "end sessions",
        "erase invitations",
    ];
    let erased_too: ExpectedVerdict = Ok(Box::leak(Box::new(erased_too)));
    let erased = || {
        let person = Person { email: None, name: None, ..somebody().person };
        ended(PersonRecord { person, ..somebody() })
    };
    for (record, is_erased, expected) in [
        (member(&[SUPPORT]), false, all),
        (member(&[SUPPORT]), true, erased_too),
        (ended(somebody()), false, Ok(&[][..])),
        (ended(somebody()), true, Ok(&["update", "erase invitations"])),
        (erased(), true, Ok(&["erase invitations"])),
        (member(&[OWNER]), true, Err(Refusal::LastOwner)),
    ] {
        check(Some(record), end(is_erased), expected);
    }
    check(None, end(false), Err(Refusal::NoPerson));
}

#[test]
fn a_password_is_changed_by_whoever_knows_it() {
    let change = || PersonAction::ChangePassword {
        person: ID,
        old: hash("old"),
        new: hash("new"),
        kept: (SessionId::from_u128(1), TokenHash::from_bytes([1; 32])),
    };
    let mut facts = facts(Some(member(&[SUPPORT])));
    check_by(ActorId::Person(ID), &facts, change(), Err(Refusal::PasswordChanged));
    facts.password = Some(hash("another"));
    check_by(ActorId::Person(ID), &facts, change(), Err(Refusal::PasswordChanged));
    facts.password = Some(hash("old"));
    let changed: ExpectedVerdict = Ok(&["put password", "end other sessions", "renew session"]);
    check_by(ActorId::Person(ID), &facts, change(), changed);
}

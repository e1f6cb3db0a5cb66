//! Links of people: made, renewed, used, and ended with what they were made for.

use super::{done, ended, touched};
use crate::admin::field_change::FieldChange;
use crate::admin::{
    AccountEffect, AccountRefusal, ActorId, Authority, EndedSessions, LinkPurpose, NewLink,
    PasswordHash, Person, PersonGrant, PersonLink, PersonRecord, PersonWrite, Reach, Role, UseCase,
};
use crate::{LinkId, PersonId, Timestamp};

pub(super) fn open_link(
    id: LinkId,
    record: &PersonRecord,
    now: Timestamp,
) -> Result<PersonLink, AccountRefusal> {
    let link = record.open_links(now).find(|link| link.id == id);
    link.cloned().ok_or(AccountRefusal::NoLink)
}

/// Effect of an offer to a person who is there, or who is made for it.
pub(super) fn offered(
    actor: ActorId,
    (new, known): (&Person, Option<&PersonRecord>),
    (purpose, link): (LinkPurpose, NewLink),
    now: Timestamp,
) -> AccountEffect {
    let (mut writes, mut changes) = (Vec::new(), Vec::new());
    let id = known.map_or(new.id, |record| record.person.id);
    if known.is_none() {
        let made = Person { created_at: now, ended_at: None, ..new.clone() };
        changes.extend(made.email.as_ref().map(|_| touched("email")));
        changes.extend(made.name.as_ref().map(|_| touched("name")));
        writes.push(PersonWrite::Insert(made));
    }
    // An offer is of the reach that it gives, whoever makes it.
    let reach = purpose.authority().map_or(Reach::All, |authority| authority.reach);
    let (put, told) = put_link(actor, (id, reach), (purpose, link), now);
    writes.push(put);
    changes.extend(purpose.authority().map(|it| FieldChange::set("offered", it)));
    changes.extend(told);
    done(id, writes, changes)
}

/// The write of a link, and what the audit log has of it. The reach is among it: a version before had one link a
/// person, and its rows have none.
fn put_link(
    actor: ActorId,
    (person, reach): (PersonId, Reach),
    (purpose, new): (LinkPurpose, NewLink),
    now: Timestamp,
) -> (PersonWrite, [FieldChange; 3]) {
    let (id, expires_at) = (new.id, now.after(new.lifetime));
    let link =
        PersonLink { id, person, reach, purpose, expires_at, used_at: None, created_by: actor };
    let within = match reach {
        Reach::All => "all".to_owned(),
        Reach::Wallet(wallet) => wallet.to_string(),
    };
    let changes = [
        FieldChange::set("link_id", id),
        FieldChange::set("link_expires_at", expires_at.as_micros()),
        FieldChange::set("link_reach", within),
    ];
    (PersonWrite::PutLink(link, new.token), changes)
}

/// Ends unused links that set a password: of any reach, because a password is of all of them.
pub(super) fn end_password_links(
    record: &PersonRecord,
    is_ended: impl Fn(&PersonLink) -> bool,
    (writes, changes): (&mut Vec<PersonWrite>, &mut Vec<FieldChange>),
) {
    let sets_password =
        |link: &&PersonLink| link.used_at.is_none() && link.purpose == LinkPurpose::SetPassword;
    for link in record.links.iter().filter(sets_password).filter(|link| is_ended(link)) {
        writes.push(PersonWrite::DeleteLink(link.id));
        changes.push(ended("link_ended", link.id));
    }
}

/// Creates another link: for a person with a role one that sets their password, which they have no more from
/// now on, and for one who has not accepted yet the same offer again.
pub(super) fn renew_link(
    actor: ActorId,
    grantor: Authority,
    link: NewLink,
    (record, now): (&PersonRecord, Timestamp),
) -> Result<AccountEffect, AccountRefusal> {
    let (id, reach) = (record.person.id, grantor.reach);
    let is_seen = |grant: &PersonGrant| reach == Reach::All || grant.authority.reach == reach;
    if !record.grants.iter().any(is_seen) {
        let is_unused = |link: &&PersonLink| {
            let is_seen = reach == Reach::All || link.reach == reach;
            is_seen && link.used_at.is_none() && link.purpose != LinkPurpose::FirstOwner
        };
        let last = record.links.iter().find(is_unused);
        let purpose = last.map(|link| link.purpose).ok_or(AccountRefusal::NothingOffered)?;
        if !purpose.authority().is_some_and(|offered| grantor.may_grant(offered)) {
            return Err(AccountRefusal::BeyondGrantor);
        }
        return Ok(offered(actor, (&record.person, Some(record)), (purpose, link), now));
    }
    let gives_all = record.grants.iter().all(|grant| {
        // An owner's link is everything: it is made beside the database, and nowhere else.
        let is_safe = grant.authority.role != Role::Owner || actor == ActorId::Local;
        is_safe && grantor.may_grant(grant.authority)
    });
    // Nor is an offer of others taken away with it.
    let open = record.link_of(reach).filter(|link| link.is_open(now));
    let open = open.and_then(|link| link.purpose.authority());
    if !gives_all || open.is_some_and(|offered| !grantor.may_grant(offered)) {
        return Err(AccountRefusal::BeyondGrantor);
    }
    let purpose = LinkPurpose::SetPassword;
    let (put, told) = put_link(actor, (id, reach), (purpose, link), now);
    let all = EndedSessions::All;
    let mut writes = vec![PersonWrite::DeletePassword(id), PersonWrite::EndSessions(id, all)];
    let mut changes = told.to_vec();
    // The one of the same reach is replaced.
    end_password_links(record, |link| link.reach != reach, (&mut writes, &mut changes));
    writes.push(put);
    changes.extend(record.has_password.then(|| touched("password")));
    Ok(done(id, writes, changes))
}

/// True if the maker of a link could make it now as well.
pub(super) fn is_still_given(
    link: &PersonLink,
    record: &PersonRecord,
    maker: &[Authority],
) -> bool {
    // Whoever has the same role as is given has not, for that, the right to give it.
    let may = |use_case, given| maker.iter().any(|it| it.role.may(use_case) && it.may_grant(given));
    match link.created_by {
        // Beside the database there is no role to lose.
        ActorId::Local => true,
        ActorId::Anonymous => false,
        ActorId::AdminKey(_) | ActorId::Person(_) => match link.purpose.authority() {
            Some(offered) => may(UseCase::PersonInvite, offered),
            None => record.grants.iter().all(|it| may(UseCase::PersonLink, it.authority)),
        },
    }
}

/// Effect of a link that is used.
pub(super) fn taken(
    record: &PersonRecord,
    link: &PersonLink,
    password: Option<&PasswordHash>,
    now: Timestamp,
) -> AccountEffect {
    let id = record.person.id;
    let mut writes = vec![PersonWrite::UseLink(link.id, now)];
    let mut changes = vec![FieldChange::set("link_used", link.id)];
    // Another link may have given it since: a person has each authority once.
    let has = |authority| record.grants.iter().any(|grant| grant.authority == authority);
    if let Some(authority) = link.purpose.authority().filter(|given| !has(*given)) {
        let grant = PersonGrant { authority, granted_at: now, granted_by: link.created_by };
        writes.push(PersonWrite::InsertGrant(id, grant));
        changes.push(FieldChange::set("grant", authority));
    }
    if let Some(password) = password {
        writes.push(PersonWrite::PutPassword(id, password.clone(), now));
        changes.push(touched("password"));
        end_password_links(record, |other| other.id != link.id, (&mut writes, &mut changes));
    }
    done(id, writes, changes)
}

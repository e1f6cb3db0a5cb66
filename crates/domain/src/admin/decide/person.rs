//! The judgement of changes of people.
//!
//! An invitation takes the place of an open link within its reach, if its grantor could have made that link as well.
//! Links of other reaches stay, and are not judged by: a holder learns nothing of them. A person without a password
//! who has a grant accepts an invitation signed in, or its link would set a password for all that they have.
//!
//! A link is worth what its maker may give when it is used: whoever has ended, or has lost the role that
//! they gave it with, lets nobody in by the links that they have left behind.

#[cfg(test)]
mod tests;

use super::super::command::{AccountCommand, AccountEffect, AccountFacts, AccountWrite};
use super::super::field_change::FieldChange;
use super::super::person::{
    Authority, LinkPurpose, PasswordHash, Person, PersonGrant, PersonLink, PersonRecord,
};
use super::super::person_action::{EndedSessions, NewLink, PersonAction, PersonWrite};
use super::super::refusal::AccountRefusal;
use super::super::thing::Thing;
use super::super::{ActorId, BoundedKind, PersonInvitation, Reach, Role, UseCase};
use super::refuse_more;
use crate::{LinkId, PersonId, Timestamp};

/// Judges a change of a person.
pub(super) fn decide(
    command: &AccountCommand,
    action: &PersonAction,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    use PersonAction as Action;
    match action {
        Action::Invite { new, offered, grantor, link, .. } => {
            invite(command, (new, *link), [*offered, *grantor], facts)
        }
        Action::InviteFirstOwner { new, link } => {
            if facts.other_owners > 0 {
                return Err(AccountRefusal::OwnerExists);
            }
            let known = facts.person.record.as_ref();
            let offer = (LinkPurpose::FirstOwner, *link);
            Ok(offered(command.actor, (new, known), offer, facts.now))
        }
        Action::RenewLink { grantor, link, .. } => {
            renew_link(command.actor, *grantor, *link, facts)
        }
        Action::Accept { link, made_by, password, is_signed_in, .. } => {
            accept((*link, *made_by), password.as_ref(), *is_signed_in, facts)
        }
        Action::AcceptFirstOwner { link, email, name, password, .. } => {
            let record = person(facts)?;
            let link = open_link(*link, record, facts.now)?;
            if facts.other_owners > 0 {
                return Err(AccountRefusal::NoLink);
            }
            if facts.person.is_email_taken {
                return Err(AccountRefusal::EmailTaken);
            }
            let (email, name) = (Some(email.clone()), name.clone());
            let person = Person { email, name, ..record.person.clone() };
            let mut effect = taken(record, &link, Some(password), facts.now);
            effect.writes.insert(0, write(PersonWrite::Update(person)));
            Ok(effect)
        }
        Action::ChangePassword { person: id, old, new, kept } => {
            let record = person(facts)?;
            // Whoever proved it did so before: another change may have come between.
            if facts.person.password.as_ref() != Some(old) {
                return Err(AccountRefusal::PasswordChanged);
            }
            let mut writes = vec![
                PersonWrite::PutPassword(*id, new.clone(), facts.now),
                PersonWrite::EndSessions(*id, EndedSessions::Except(kept.0)),
                PersonWrite::RenewSession(kept.0, kept.1),
            ];
            let mut changes = vec![touched("password")];
            end_password_links(record, |_link| true, (&mut writes, &mut changes));
            Ok(done(*id, writes, changes))
        }
        Action::EndGrant { authority, grantor, .. } => end_grant(*authority, *grantor, facts),
        Action::End { is_erased, .. } => end(*is_erased, facts),
    }
}

/// The person, who has not ended.
fn person(facts: &AccountFacts) -> Result<&PersonRecord, AccountRefusal> {
    let record = facts.person.record.as_ref().ok_or(AccountRefusal::NoPerson)?;
    if record.person.ended_at.is_some() { Err(AccountRefusal::PersonEnded) } else { Ok(record) }
}

fn open_link(
    id: LinkId,
    record: &PersonRecord,
    now: Timestamp,
) -> Result<PersonLink, AccountRefusal> {
    let link = record.open_links(now).find(|link| link.id == id);
    link.cloned().ok_or(AccountRefusal::NoLink)
}

const fn write(write: PersonWrite) -> AccountWrite {
    AccountWrite::Person(write)
}

fn done(id: PersonId, writes: Vec<PersonWrite>, changes: Vec<FieldChange>) -> AccountEffect {
    let writes = writes.into_iter().map(write).collect();
    AccountEffect::done(writes, Thing::Person(id), changes)
}

/// A member whose value the trail does not tell.
fn touched(field: &str) -> FieldChange {
    FieldChange { field: field.to_owned(), before: None, after: None }
}

fn ended(field: &str, before: impl ToString) -> FieldChange {
    FieldChange { field: field.to_owned(), before: Some(before.to_string()), after: None }
}

fn invite(
    command: &AccountCommand,
    (new, link): (&Person, NewLink),
    [authority, grantor]: [Authority; 2],
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    let known = facts.person.record.as_ref();
    if let Some(record) = known {
        if record.grants.iter().any(|grant| grant.authority == authority) {
            return Ok(AccountEffect::already_done(Thing::Person(record.person.id)));
        }
        let is_here = |grant: &PersonGrant| grant.authority.reach == authority.reach;
        let is_lost = !record.has_password && record.grants.iter().any(is_here);
        let open = record.link_of(authority.reach).filter(|link| link.is_open(facts.now));
        let is_of_others = open.is_some_and(|open| {
            open.purpose.authority().is_none_or(|offered| !grantor.may_grant(offered))
        });
        if is_lost || is_of_others {
            return Err(AccountRefusal::PersonHasLink);
        }
    }
    if authority.reach != Reach::All {
        // Of the others: whoever is counted already is counted once, whatever else is offered.
        refuse_more(BoundedKind::People, 1, command.bounds.people, facts)?;
    }
    let offer = (LinkPurpose::Accept(authority), link);
    let mut effect = offered(command.actor, (new, known), offer, facts.now);
    if let Reach::Wallet(wallet) = authority.reach {
        let id = known.map_or(new.id, |record| record.person.id);
        let (name, invited_at) = (new.name.clone(), facts.now);
        let invitation = PersonInvitation { wallet, name, invited_at, invited_by: command.actor };
        effect.writes.push(write(PersonWrite::PutInvitation(id, invitation)));
    }
    Ok(effect)
}

/// Effect of an offer to a person who is there, or who is made for it.
fn offered(
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
    let told = [
        FieldChange::set("link_id", id),
        FieldChange::set("link_expires_at", expires_at.as_micros()),
        FieldChange::set("link_reach", within),
    ];
    (PersonWrite::PutLink(link, new.token), told)
}

/// Ends links that set a password and that nobody has used: of any reach, because a password is of all of them.
fn end_password_links(
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

/// Makes another link: of a person who has something one that sets their password, which they have no
/// more from now on, and of one who has not accepted yet the same offer again.
fn renew_link(
    actor: ActorId,
    grantor: Authority,
    link: NewLink,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    let record = person(facts)?;
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
        return Ok(offered(actor, (&record.person, Some(record)), (purpose, link), facts.now));
    }
    let gives_all = record.grants.iter().all(|grant| {
        // An owner's link is everything: it is made beside the database, and nowhere else.
        let is_safe = grant.authority.role != Role::Owner || actor == ActorId::Local;
        is_safe && grantor.may_grant(grant.authority)
    });
    // Nor is an offer of others taken away with it.
    let open = record.link_of(reach).filter(|link| link.is_open(facts.now));
    let open = open.and_then(|link| link.purpose.authority());
    if !gives_all || open.is_some_and(|offered| !grantor.may_grant(offered)) {
        return Err(AccountRefusal::BeyondGrantor);
    }
    let purpose = LinkPurpose::SetPassword;
    let (put, told) = put_link(actor, (id, reach), (purpose, link), facts.now);
    let all = EndedSessions::All;
    let mut writes = vec![PersonWrite::DeletePassword(id), PersonWrite::EndSessions(id, all)];
    let mut changes = told.to_vec();
    // The one of the same reach is replaced.
    end_password_links(record, |link| link.reach != reach, (&mut writes, &mut changes));
    writes.push(put);
    changes.extend(record.has_password.then(|| touched("password")));
    Ok(done(id, writes, changes))
}

fn accept(
    (link, made_by): (LinkId, ActorId),
    password: Option<&PasswordHash>,
    is_signed_in: bool,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    let record = person(facts)?;
    let link = open_link(link, record, facts.now)?;
    // The facts are of this maker.
    let is_of_maker = link.created_by == made_by && is_still_given(&link, record, facts);
    if link.purpose == LinkPurpose::FirstOwner || !is_of_maker {
        return Err(AccountRefusal::NoLink);
    }
    let password = match (record.requires_sign_in(link.purpose), password) {
        (true, _) if !is_signed_in => return Err(AccountRefusal::SignInFirst),
        // The link is no way to another password.
        (true, _) => None,
        (false, Some(password)) => Some(password),
        (false, None) => return Err(AccountRefusal::PasswordMissing),
    };
    Ok(taken(record, &link, password, facts.now))
}

/// True where whoever made a link could make it now as well.
fn is_still_given(link: &PersonLink, record: &PersonRecord, facts: &AccountFacts) -> bool {
    // Whoever has the same role as is given has not, for that, the right to give it.
    let may = |use_case, given| {
        let mut makers = facts.person.maker.iter();
        makers.any(|it| it.role.may(use_case) && it.may_grant(given))
    };
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
fn taken(
    record: &PersonRecord,
    link: &PersonLink,
    password: Option<&PasswordHash>,
    now: Timestamp,
) -> AccountEffect {
    let id = record.person.id;
    let mut writes = vec![PersonWrite::UseLink(link.id, now)];
    let mut changes = vec![FieldChange::set("link_used", link.id)];
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

/// Refuses to end an owner where nobody else is one for good.
fn refuse_last_owner(is_owner: bool, facts: &AccountFacts) -> Result<(), AccountRefusal> {
    // A person has no end: others who have one are no one to follow them.
    if is_owner && facts.other_lasting_owners == 0 {
        return Err(AccountRefusal::LastOwner);
    }
    Ok(())
}

fn end_grant(
    authority: Authority,
    grantor: Authority,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    let record = person(facts)?;
    let id = record.person.id;
    if !grantor.may_grant(authority) {
        return Err(AccountRefusal::BeyondGrantor);
    }
    let (mut writes, mut changes) = (Vec::new(), Vec::new());
    let unused = || record.links.iter().filter(|link| link.used_at.is_none());
    for link in unused().filter(|link| link.purpose == LinkPurpose::Accept(authority)) {
        writes.push(PersonWrite::DeleteLink(link.id));
        changes.push(ended("offered", authority));
    }
    if record.grants.iter().any(|grant| grant.authority == authority) {
        refuse_last_owner(authority.role == Role::Owner, facts)?;
        writes.push(PersonWrite::DeleteGrant(id, authority));
        writes.push(PersonWrite::EndSessions(id, EndedSessions::Using(authority)));
        changes.push(ended("grant", authority));
        if record.grants.len() == 1 {
            // Whoever has nothing has no password: the next invitation sets one.
            writes.push(PersonWrite::DeletePassword(id));
            writes.push(PersonWrite::EndSessions(id, EndedSessions::All));
            changes.extend(record.has_password.then(|| touched("password")));
            let sets_password = unused().filter(|link| link.purpose == LinkPurpose::SetPassword);
            writes.extend(sets_password.map(|link| PersonWrite::DeleteLink(link.id)));
        }
    }
    if let Reach::Wallet(wallet) = authority.reach
        && !writes.is_empty()
    {
        let is_left = |other: Authority| other.reach == authority.reach && other != authority;
        let mut grants = record.grants.iter().map(|grant| grant.authority);
        let has_links = unused().any(|link| {
            let is_ended = writes.contains(&PersonWrite::DeleteLink(link.id));
            link.reach == authority.reach && !is_ended
        });
        // The next invitation there is a first one.
        if !has_links && !grants.any(is_left) {
            writes.push(PersonWrite::DeleteInvitation(id, wallet));
        }
    }
    Ok(done(id, writes, changes))
}

fn end(is_erased: bool, facts: &AccountFacts) -> Result<AccountEffect, AccountRefusal> {
    let record = facts.person.record.as_ref().ok_or(AccountRefusal::NoPerson)?;
    let (id, mut after) = (record.person.id, record.person.clone());
    let (mut writes, mut changes) = (Vec::new(), Vec::new());
    if after.ended_at.is_none() {
        let is_owner = record.grants.iter().any(|grant| grant.authority.role == Role::Owner);
        refuse_last_owner(is_owner, facts)?;
        after.ended_at = Some(facts.now);
        changes.push(FieldChange::set("ended_at", facts.now.as_micros()));
        changes.extend(record.grants.iter().map(|grant| ended("grant", grant.authority)));
        changes.extend(record.has_password.then(|| touched("password")));
        writes.extend([
            PersonWrite::DeleteGrants(id),
            PersonWrite::DeletePassword(id),
            PersonWrite::DeleteLinks(id),
            PersonWrite::EndSessions(id, EndedSessions::All),
        ]);
    }
    if is_erased {
        changes.extend(after.email.take().map(|_| touched("email")));
        changes.extend(after.name.take().map(|_| touched("name")));
        writes.push(PersonWrite::EraseInvitations(id));
    }
    if after != record.person {
        writes.insert(0, PersonWrite::Update(after));
    }
    Ok(done(id, writes, changes))
}

//! The judgement of changes of people.
//!
//! An invitation takes the place of an open link within its reach, if its grantor could have made that link as
//! well. Links of other reaches stay, and do not count in the judgement: a holder learns no part of them. A
//! person without a password who has a grant accepts an invitation signed in, or its link would set a password
//! for all that they have.
//!
//! A link is worth the rights that its maker has when it is used: if the maker has ended, or has lost the role
//! that they gave it with, their links admit no person any more.
//!
//! The authority of the grantor comes with the action, because whether it is enough depends on the person's own
//! roles, which are read under the locks.

mod links;
#[cfg(test)]
mod tests;

use self::links::{end_password_links, is_still_given, offered, open_link, renew_link, taken};
use super::{AccountCommand, Creation, refuse_more};
use crate::admin::field_change::FieldChange;
use crate::admin::{
    AccountEffect, AccountRefusal, AccountWrite, ActorId, Authority, BoundedKind, Count,
    EmailAddress, EndedSessions, Facts, FoundPerson, LinkPurpose, NewLink, Owners, PasswordHash,
    Person, PersonBy, PersonGrant, PersonInvitation, PersonRecord, PersonWrite, Reach, ResourceId,
    Role, UseCase,
};
use crate::private::Private;
use crate::secret::TokenHash;
use crate::{AdminKeyId, LinkId, PersonId, SessionId, Timestamp};

/// Change of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonAction {
    /// Offer an authority to the person with this address.
    Invite {
        /// The person, if the address is new.
        new: Person,
        /// The address.
        email: EmailAddress,
        /// The role that is offered.
        offered: Authority,
        /// Authority of its grantor.
        grantor: Authority,
        /// The link.
        link: NewLink,
    },
    /// Offer everything to the first owner, who is the bearer of the link.
    InviteFirstOwner {
        /// The person, if no first owner is pending yet.
        new: Person,
        /// The link.
        link: NewLink,
    },
    /// Give up a person's password and sessions, and make another link.
    RenewLink {
        /// The person.
        person: PersonId,
        /// Authority of its grantor.
        grantor: Authority,
        /// The link.
        link: NewLink,
    },
    /// Take what a link gives.
    Accept {
        /// The person.
        person: PersonId,
        /// The link.
        link: LinkId,
        /// Actor that made the link.
        made_by: ActorId,
        /// Password for a person without one.
        password: Option<PasswordHash>,
        /// True if the person has signed in.
        is_signed_in: bool,
    },
    /// Become the first owner.
    AcceptFirstOwner {
        /// The person.
        person: PersonId,
        /// The link.
        link: LinkId,
        /// Address of the owner.
        email: EmailAddress,
        /// Name of the owner.
        name: Option<Private<String>>,
        /// Password of the owner.
        password: PasswordHash,
    },
    /// Change a password that is known.
    ChangePassword {
        /// The person.
        person: PersonId,
        /// Password that was proven.
        old: PasswordHash,
        /// The next one.
        new: PasswordHash,
        /// Session that stays, and the hash of its next token.
        kept: (SessionId, TokenHash),
    },
    /// End an authority, or the offer of it.
    EndGrant {
        /// The person.
        person: PersonId,
        /// The role that ends.
        authority: Authority,
        /// Authority of the one who ends it.
        grantor: Authority,
    },
    /// End a person for good.
    End {
        /// The person.
        person: PersonId,
        /// True if their address and name are erased.
        is_erased: bool,
    },
}

/// No key has the id of zeros.
const NO_KEY: AdminKeyId = AdminKeyId::from_u128(0);
/// Nor has a person.
const NOBODY: PersonId = PersonId::from_u128(0);

impl PersonAction {
    pub(super) const fn row(&self) -> (UseCase, Creation) {
        match self {
            Self::Invite { new, .. } => {
                (UseCase::PersonInvite, Creation::Resource(ResourceId::Person(new.id)))
            }
            Self::InviteFirstOwner { .. } => (UseCase::PersonInvite, Creation::Secret),
            Self::RenewLink { .. } => (UseCase::PersonLink, Creation::Secret),
            Self::Accept { .. } | Self::AcceptFirstOwner { .. } => {
                (UseCase::PersonAccept, Creation::Nothing)
            }
            Self::ChangePassword { .. } => (UseCase::PersonPassword, Creation::Nothing),
            Self::EndGrant { .. } | Self::End { .. } => (UseCase::PersonEnd, Creation::Nothing),
        }
    }

    pub(super) async fn decide<F: Facts>(
        &self,
        command: &AccountCommand,
        facts: &mut F,
    ) -> Result<AccountEffect, F::Error> {
        let now = facts.now();
        Ok(match self {
            Self::Invite { new, email, offered, grantor, link } => {
                let (bound, reach) = (command.bounds.people, offered.reach);
                let known = record(facts.person(PersonBy::Email(email)).await?);
                let in_force = match reach {
                    Reach::All => None,
                    Reach::Wallet(wallet) => {
                        Some(facts.count(Count::People(wallet, email, bound)).await?)
                    }
                };
                let offer = ((new, *link), [*offered, *grantor]);
                invite(command, offer, (known.as_ref(), in_force), now)?
            }
            Self::InviteFirstOwner { new, link } => {
                let known = record(facts.person(PersonBy::Unnamed).await?);
                if facts.owners((NO_KEY, NOBODY)).await?.all > 0 {
                    return Err(AccountRefusal::OwnerExists.into());
                }
                let offer = (LinkPurpose::FirstOwner, *link);
                offered(command.actor, (new, known.as_ref()), offer, now)
            }
            Self::RenewLink { person, grantor, link } => {
                let (known, _password) = known(facts, *person).await?;
                renew_link(command.actor, *grantor, *link, (&known, now))?
            }
            Self::Accept { person, link, made_by, password, is_signed_in } => {
                let by = (password.as_ref(), *is_signed_in);
                accept((*person, *link), *made_by, by, facts).await?
            }
            Self::AcceptFirstOwner { person, link, email, name, password } => {
                let who = (email.clone(), name.clone());
                accept_first_owner((*person, *link), who, password, facts).await?
            }
            Self::ChangePassword { person, old, new, kept } => {
                let (record, password) = known(facts, *person).await?;
                // Whoever proved it did so before: another change may have come between.
                if password.as_ref() != Some(old) {
                    return Err(AccountRefusal::PasswordChanged.into());
                }
                let mut writes = vec![
                    PersonWrite::PutPassword(*person, new.clone(), now),
                    PersonWrite::EndSessions(*person, EndedSessions::Except(kept.0)),
                    PersonWrite::RenewSession(kept.0, kept.1),
                ];
                let mut changes = vec![touched("password")];
                // An open link that sets a password would be a way around the new one.
                end_password_links(&record, |_link| true, (&mut writes, &mut changes));
                done(*person, writes, changes)
            }
            Self::EndGrant { person, authority, grantor } => {
                let found = facts.person(PersonBy::Id(*person)).await?;
                let owners = facts.owners((NO_KEY, *person)).await?;
                end_grant(*authority, *grantor, &in_force(found)?.0, owners)?
            }
            Self::End { person, is_erased } => {
                let found = record(facts.person(PersonBy::Id(*person)).await?);
                let owners = facts.owners((NO_KEY, *person)).await?;
                end(*is_erased, &found.ok_or(AccountRefusal::NoPerson)?, owners, now)?
            }
        })
    }
}

async fn accept<F: Facts>(
    (person, link): (PersonId, LinkId),
    made_by: ActorId,
    (password, is_signed_in): (Option<&PasswordHash>, bool),
    facts: &mut F,
) -> Result<AccountEffect, F::Error> {
    let found = facts.person(PersonBy::Id(person)).await?;
    let maker = facts.authorities(made_by).await?;
    let record = in_force(found)?.0;
    let link = open_link(link, &record, facts.now())?;
    // The authorities are of this maker.
    let is_of_maker = link.created_by == made_by && is_still_given(&link, &record, &maker);
    if link.purpose == LinkPurpose::FirstOwner || !is_of_maker {
        return Err(AccountRefusal::NoLink.into());
    }
    let password = match (record.requires_sign_in(link.purpose), password) {
        (true, _) if !is_signed_in => return Err(AccountRefusal::SignInFirst.into()),
        // The link is no way to another password.
        (true, _) => None,
        (false, Some(password)) => Some(password),
        (false, None) => return Err(AccountRefusal::PasswordMissing.into()),
    };
    Ok(taken(&record, &link, password, facts.now()))
}

async fn accept_first_owner<F: Facts>(
    (person, link): (PersonId, LinkId),
    (email, name): (EmailAddress, Option<Private<String>>),
    password: &PasswordHash,
    facts: &mut F,
) -> Result<AccountEffect, F::Error> {
    let found = facts.person(PersonBy::Id(person)).await?;
    let owners = facts.owners((NO_KEY, NOBODY)).await?;
    let is_email_taken = facts.has_email(&email, person).await?;
    let record = in_force(found)?.0;
    let link = open_link(link, &record, facts.now())?;
    if owners.all > 0 {
        return Err(AccountRefusal::NoLink.into());
    }
    if is_email_taken {
        return Err(AccountRefusal::EmailTaken.into());
    }
    let mut effect = taken(&record, &link, Some(password), facts.now());
    let person = Person { email: Some(email), name, ..record.person };
    effect.writes.insert(0, write(PersonWrite::Update(person)));
    Ok(effect)
}

fn record(found: Option<FoundPerson>) -> Option<PersonRecord> {
    found.map(|(record, _password)| record)
}

/// A person who has not ended.
fn in_force(found: Option<FoundPerson>) -> Result<FoundPerson, AccountRefusal> {
    let found = found.ok_or(AccountRefusal::NoPerson)?;
    if found.0.person.ended_at.is_some() { Err(AccountRefusal::PersonEnded) } else { Ok(found) }
}

async fn known<F: Facts>(facts: &mut F, id: PersonId) -> Result<FoundPerson, F::Error> {
    Ok(in_force(facts.person(PersonBy::Id(id)).await?)?)
}

const fn write(write: PersonWrite) -> AccountWrite {
    AccountWrite::Person(write)
}

fn done(id: PersonId, writes: Vec<PersonWrite>, changes: Vec<FieldChange>) -> AccountEffect {
    let writes = writes.into_iter().map(write).collect();
    AccountEffect::done(writes, ResourceId::Person(id), changes)
}

/// A member whose value the audit log does not contain.
fn touched(field: &str) -> FieldChange {
    FieldChange { field: field.to_owned(), before: None, after: None }
}

fn ended(field: &str, before: impl ToString) -> FieldChange {
    FieldChange { field: field.to_owned(), before: Some(before.to_string()), after: None }
}

fn invite(
    command: &AccountCommand,
    ((new, link), [authority, grantor]): ((&Person, NewLink), [Authority; 2]),
    (known, in_force): (Option<&PersonRecord>, Option<u32>),
    now: Timestamp,
) -> Result<AccountEffect, AccountRefusal> {
    if let Some(record) = known {
        if record.grants.iter().any(|grant| grant.authority == authority) {
            return Ok(AccountEffect::already_done(ResourceId::Person(record.person.id)));
        }
        let is_here = |grant: &PersonGrant| grant.authority.reach == authority.reach;
        let is_lost = !record.has_password && record.grants.iter().any(is_here);
        let open = record.link_of(authority.reach).filter(|link| link.is_open(now));
        let is_of_others = open.is_some_and(|open| {
            open.purpose.authority().is_none_or(|offered| !grantor.may_grant(offered))
        });
        if is_lost || is_of_others {
            return Err(AccountRefusal::PersonHasLink);
        }
    }
    if let Some(in_force) = in_force {
        // Of the others: whoever is counted already is counted once, whatever else is offered.
        refuse_more(BoundedKind::People, 1, command.bounds.people, in_force)?;
    }
    let offer = (LinkPurpose::Accept(authority), link);
    let mut effect = offered(command.actor, (new, known), offer, now);
    if let Reach::Wallet(wallet) = authority.reach {
        let id = known.map_or(new.id, |record| record.person.id);
        let (name, invited_at) = (new.name.clone(), now);
        let invitation = PersonInvitation { wallet, name, invited_at, invited_by: command.actor };
        effect.writes.push(write(PersonWrite::PutInvitation(id, invitation)));
    }
    Ok(effect)
}

/// Refuses to end the last owner.
fn refuse_last_owner(is_owner: bool, others: Owners) -> Result<(), AccountRefusal> {
    // A person has no end: others who have one are no one to follow them.
    if is_owner && others.lasting == 0 { Err(AccountRefusal::LastOwner) } else { Ok(()) }
}

fn end_grant(
    authority: Authority,
    grantor: Authority,
    record: &PersonRecord,
    owners: Owners,
) -> Result<AccountEffect, AccountRefusal> {
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
        refuse_last_owner(authority.role == Role::Owner, owners)?;
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

fn end(
    is_erased: bool,
    record: &PersonRecord,
    owners: Owners,
    now: Timestamp,
) -> Result<AccountEffect, AccountRefusal> {
    let (id, mut after) = (record.person.id, record.person.clone());
    let (mut writes, mut changes) = (Vec::new(), Vec::new());
    if after.ended_at.is_none() {
        let is_owner = record.grants.iter().any(|grant| grant.authority.role == Role::Owner);
        refuse_last_owner(is_owner, owners)?;
        after.ended_at = Some(now);
        changes.push(FieldChange::set("ended_at", now.as_micros()));
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

//! People: invited, listed, ended.
//!
//! An administrator grants and ends only roles that they have. An invitation beyond the own role is refused here; every
//! grant, link and end is judged in the transaction, because the roles of the person may change until then: the action
//! carries the rights of its grantor.
//!
//! A holder's administrator sees of people only their roles in the one wallet: a person without a role there is not
//! found, and 404 comes before 403. A repetition is answered from its request key before that look-up, because the
//! change may have ended all that the person had there.
//!
//! Never in here: the token of a link in an answer to a repetition, or the end of the last owner, which the
//! transaction refuses.

use holdfast_domain::PersonId;
use holdfast_domain::admin::listing::{Page, PageRequest, PersonFilter};
use holdfast_domain::admin::{
    AccountAction, Authority, EmailAddress, LINK_LIFETIME, NewLink, Person, PersonAction,
    PersonRecord, Reach, ResourceId, Role, UseCase,
};
use holdfast_domain::private::Private;
use holdfast_domain::secret::LinkToken;
use holdfast_domain::{LinkId, Timestamp};
use uuid::Uuid;

use crate::api_keys::random_bits;
use crate::{Accounts, AccountsError, Name, Outcome, Principal, Request, ResourceKind, Result};

/// Invitation of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInvitation {
    /// Address of the invited person.
    pub email: EmailAddress,
    /// Name; the one of a person who is there stays.
    pub name: Option<Name>,
    /// Role.
    pub role: Role,
    /// Wallets that the role is for: one for a holder's role, all for any other.
    pub reach: Reach,
}

/// An invitation or a link that was created, with its token if this very request created it.
#[derive(Debug, Clone)]
pub struct InvitationWithLink {
    /// The person.
    pub person: PersonId,
    /// Token of the link, which is shown once; `None` for a repetition, and for a person who has the role
    /// already.
    pub link: Option<LinkToken>,
}

impl Accounts {
    /// People, a page at a time.
    pub async fn people(
        &self,
        principal: &Principal,
        filter: PersonFilter,
        page: PageRequest,
    ) -> Result<Page<PersonRecord>> {
        principal.authorize(UseCase::PersonRead)?;
        let wallet = match (principal.only_wallet(), filter.wallet) {
            (Some(own), Some(requested)) if own != requested => {
                // Empty and not refused: an error would reveal whether a wallet of this id exists.
                return Ok(Page::empty());
            }
            (own, requested) => own.or(requested),
        };
        let filter = PersonFilter { wallet, seen_from: principal.only_wallet(), ..filter };
        let found = self.book.people(filter, page).await?;
        self.note_read(principal, UseCase::PersonRead, wallet).await?;
        Ok(found.filter_map(|record| record.seen_from(principal.reach)))
    }

    /// The person of this id.
    pub async fn person(&self, principal: &Principal, id: PersonId) -> Result<PersonRecord> {
        principal.authorize(UseCase::PersonRead)?;
        let person = self.seen_person(principal, id).await?;
        self.note_read(principal, UseCase::PersonRead, None).await?;
        Ok(person)
    }

    /// Offers a role to the person with an address.
    pub async fn invite_person(
        &self,
        principal: &Principal,
        request: &Request,
        new: &NewInvitation,
    ) -> Result<Outcome<InvitationWithLink>> {
        principal.authorize(UseCase::PersonInvite)?;
        let offered = Authority { role: new.role, reach: new.reach };
        refuse_unsound(offered)?;
        if let Reach::Wallet(wallet) = new.reach {
            principal.reach(wallet, ResourceKind::Wallet)?;
            // Reach before the look-up: for a holder another's wallet and an invented one have the
            // same answer.
            let found = self.book.wallet_record(wallet).await?;
            found.ok_or(AccountsError::NotFound(ResourceKind::Wallet))?;
        }
        let grantor = principal.authority();
        if !grantor.may_grant(offered) {
            let use_case = UseCase::PersonInvite;
            return Err(AccountsError::Forbidden { use_case, role: principal.role });
        }
        let (email, name) = (new.email.clone(), new.name.as_ref().map(|it| it.as_str()));
        let person = new_person(principal, Some(email.clone()), name);
        let (link, token) = new_link()?;
        let action = PersonAction::Invite { new: person, email, offered, grantor, link };
        self.create_link(principal, request, action, token).await
    }

    /// Makes another link for a person: of one who has a password, that password and all sessions end
    /// with it.
    pub async fn renew_link(
        &self,
        principal: &Principal,
        request: &Request,
        person: PersonId,
    ) -> Result<Outcome<InvitationWithLink>> {
        principal.authorize(UseCase::PersonLink)?;
        self.refuse_unseen(principal, request, person).await?;
        // Carried by the action and judged in its transaction: the roles of the person may change
        // between this check and the write, and a link to more rights than the grantor has must not
        // come about.
        let grantor = principal.authority();
        let (link, token) = new_link()?;
        let action = PersonAction::RenewLink { person, grantor, link };
        self.create_link(principal, request, action, token).await
    }

    /// Ends a person for good, and erases their address and name on request. A holder's administrator ends only
    /// a person's roles in the wallet, and never the person.
    pub async fn end_person(
        &self,
        principal: &Principal,
        request: &Request,
        person: PersonId,
        is_erased: bool,
    ) -> Result<Outcome<PersonId>> {
        principal.authorize(UseCase::PersonEnd)?;
        if principal.only_wallet().is_some() {
            self.refuse_unseen(principal, request, person).await?;
            // After the look-up, so that 404 comes before 403: a refusal for each id would list the
            // people of other wallets.
            let use_case = UseCase::PersonEnd;
            return Err(AccountsError::Forbidden { use_case, role: principal.role });
        }
        let action = AccountAction::Person(PersonAction::End { person, is_erased });
        let done = self.change(principal, request, action).await?;
        Ok(Outcome { thing: person, replayed: done.replayed })
    }

    /// Ends a role of a person, or the offer of it.
    pub async fn end_grant(
        &self,
        principal: &Principal,
        request: &Request,
        person: PersonId,
        authority: Authority,
    ) -> Result<Outcome<PersonId>> {
        principal.authorize(UseCase::PersonEnd)?;
        self.refuse_unseen(principal, request, person).await?;
        refuse_unsound(authority)?;
        if let Reach::Wallet(wallet) = authority.reach {
            principal.reach(wallet, ResourceKind::Wallet)?;
        }
        let grantor = principal.authority();
        let action = AccountAction::Person(PersonAction::EndGrant { person, authority, grantor });
        let done = self.change(principal, request, action).await?;
        Ok(Outcome { thing: person, replayed: done.replayed })
    }

    async fn seen_person(&self, principal: &Principal, id: PersonId) -> Result<PersonRecord> {
        let found = self.book.person(id).await?;
        let seen = found.and_then(|record| record.seen_from(principal.reach));
        seen.ok_or(AccountsError::NotFound(ResourceKind::Person))
    }

    /// Refuses a change of a person who does not exist for this principal. A repetition is answered
    /// from its request key: what was done may have been all that they had there.
    async fn refuse_unseen(
        &self,
        principal: &Principal,
        request: &Request,
        person: PersonId,
    ) -> Result<()> {
        let is_seen_by_all = principal.only_wallet().is_none();
        // Awaited only if it decides: a future that is dropped unpolled sends no statement.
        let binding = self.book.request_record(principal.actor, request.key);
        if is_seen_by_all || binding.await?.is_some() {
            return Ok(());
        }
        self.seen_person(principal, person).await.map(drop)
    }

    async fn create_link(
        &self,
        principal: &Principal,
        request: &Request,
        action: PersonAction,
        token: LinkToken,
    ) -> Result<Outcome<InvitationWithLink>> {
        let named = match &action {
            PersonAction::Invite { new, .. } | PersonAction::InviteFirstOwner { new, .. } => new.id,
            PersonAction::RenewLink { person, .. }
            | PersonAction::Accept { person, .. }
            | PersonAction::AcceptFirstOwner { person, .. }
            | PersonAction::ChangePassword { person, .. }
            | PersonAction::EndGrant { person, .. }
            | PersonAction::End { person, .. } => *person,
        };
        let done = self.change(principal, request, AccountAction::Person(action)).await?;
        let person_of =
            |thing: &ResourceId| if let ResourceId::Person(id) = thing { Some(*id) } else { None };
        let person = done.things.iter().find_map(person_of).unwrap_or(named);
        // The token of a repetition was made here and is in no row: a link with it would not open.
        let link = Some(token).filter(|_| !request.dry_run && !done.replayed);
        Ok(Outcome { thing: InvitationWithLink { person, link }, replayed: done.replayed })
    }

    /// Makes the link of the first owner, in the place of the one before; `None` while there is an
    /// owner, a key or a person.
    pub async fn first_owner_link(&self) -> Result<Option<LinkToken>> {
        use holdfast_domain::admin::{AccountRefusal, FIRST_OWNER_LIFETIME};
        let local = Principal::local();
        let (link, token) = new_link()?;
        let link = NewLink { lifetime: FIRST_OWNER_LIFETIME, ..link };
        let new = new_person(&local, None, None);
        let request = Request::own(&[b"first owner", &link.id.to_bytes()]);
        let action = PersonAction::InviteFirstOwner { new, link };
        match self.create_link(&local, &request, action, token).await {
            Ok(told) => Ok(told.thing.link),
            // Judged in the transaction and not read before it: of two processes that start at once
            // on a new database, one could otherwise make a link after the other's owner exists.
            Err(AccountsError::Refused(AccountRefusal::OwnerExists)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn refuse_unsound(authority: Authority) -> Result<()> {
    if authority.is_sound() {
        return Ok(());
    }
    let message = "a holder's role is for one wallet, and any other role for none".to_owned();
    Err(AccountsError::Invalid { field: "wallet_id", message })
}

fn new_person(principal: &Principal, email: Option<EmailAddress>, name: Option<&str>) -> Person {
    Person {
        id: PersonId::from(Uuid::new_v4()),
        email,
        name: name.map(|name| Private(name.to_owned())),
        // The store's moment takes its place.
        created_at: Timestamp::from_micros(0),
        created_by: principal.actor,
        ended_at: None,
    }
}

fn new_link() -> Result<(NewLink, LinkToken)> {
    let token = LinkToken::new(random_bits()?);
    let id = LinkId::from(Uuid::new_v4());
    Ok((NewLink { id, token: token.hash(), lifetime: LINK_LIFETIME }, token))
}

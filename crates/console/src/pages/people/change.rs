//! The forms that make another link for a person, end one of their roles, and end the person for good.

use holdfast_accounts::FormWords;
use holdfast_accounts::fields::members;
use holdfast_accounts::verbs::forms::END_ROLE;
use holdfast_domain::admin::{Authority, PersonRecord};

use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::{Choice, FieldKind, FormField, Visit};
use crate::pages::parts::person::address;
use crate::pages::people::{framed, linked, opened};

/// The form that makes another one-time link.
pub(crate) struct RenewLink(PersonRecord);

impl FormPage for RenewLink {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        // The link ends the password that its person has.
        FormFrame { is_grave: self.0.has_password, ..framed(form, &self.0) }
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let id = self.0.person.id;
        let made = visit.accounts().renew_link(visit.principal(), &sent.request, id).await?.thing;
        Ok(linked(visit, &made, &self.0.roles()))
    }
}

/// The form that ends one role of a person, or the offer of it.
pub(crate) struct EndRole(PersonRecord);

impl EndRole {
    fn roles(&self) -> impl Iterator<Item = Authority> {
        self.0.grants.iter().map(|grant| grant.authority).chain(self.0.offered())
    }
}

impl FormPage for EndRole {
    const WORDS: Option<FormWords> = Some(END_ROLE);

    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let choice = |role: Authority| Choice::new(role.to_string(), role.to_string());
        let roles = FieldKind::Select(self.roles().map(choice).collect());
        let role = FormField::of(&members::PERSON_ROLE, roles);
        framed(form, &self.0).fields([role, FormField::reason()])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let chosen = sent.fields.raw("role");
        let role = self.roles().find(|role| role.to_string() == chosen);
        let role = role.ok_or_else(|| Failure::field("role", "Choose a role."))?;
        let (accounts, id) = (visit.accounts(), self.0.person.id);
        accounts.end_grant(visit.principal(), &sent.request, id, role).await?;
        // A holder's administrator may not see the person any more.
        Ok(FormOutcome::done().next("/people"))
    }
}

/// The form that ends a person for good.
pub(crate) struct EndPerson(PersonRecord);

impl FormPage for EndPerson {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let member = &members::PERSON_ERASURE;
        let erase = FieldKind::Checks(vec![Choice::new("yes", member.label)]);
        let erase = FormField { label: "Personal data".to_owned(), ..FormField::of(member, erase) };
        framed(form, &self.0).fields([erase, FormField::reason()])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (visit.accounts(), self.0.person.id);
        let is_erased = sent.fields.get("erase").is_some();
        accounts.end_person(visit.principal(), &sent.request, id, is_erased).await?;
        Ok(FormOutcome::done().next(address(id)))
    }
}

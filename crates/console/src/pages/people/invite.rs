//! The form that invites a person to one role.

use holdfast_accounts::fields::members;
use holdfast_accounts::{Name, NewInvitation};
use holdfast_domain::admin::{Authority, EmailAddress, Reach, Role};

use crate::failure::{Failure, FieldRefusal};
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::{Choice, FieldKind, FormField, SentFields, Visit};
use crate::pages::parts::reference::{self, WALLET, wallet_names};
use crate::pages::people::linked;

texts! { #[template(path = "pages/people.txt")] InviteText { Role { role: Role } = "role" } }

/// The form, with the authority of its user.
pub(crate) struct Invite {
    own: Authority,
    /// Wallet that the address names.
    wallet: String,
    wallets: Vec<String>,
}

impl Invite {
    /// Roles that may be given.
    fn roles(&self) -> impl Iterator<Item = Role> {
        let role = self.own.role;
        Role::ALL.into_iter().filter(move |other| role.may_grant(*other))
    }
}

impl FormPage for Invite {
    const PRIVATE: &'static [&'static str] = &["email", "name"];

    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let own = visit.principal().authority();
        let wallet = visit.query.raw(WALLET).to_owned();
        Ok(Self { own, wallet, wallets: wallet_names(visit).await? })
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let described = |role: Role| {
            let text = InviteText::Role { role }.to_string();
            Choice::new(role.label(), text)
        };
        // None is chosen beforehand: a role is given on purpose.
        let roles =
            std::iter::once(Choice::new("", "Choose a role")).chain(self.roles().map(described));
        let roles = roles.collect();
        let wallet = FormField::text(&members::PERSON_WALLET).value(&self.wallet);
        let wallet = wallet.suggesting(self.wallets.iter().cloned());
        let wallet = (self.own.reach == Reach::All).then_some(wallet);
        form.below("People", "/people")
            .fields([
                FormField::of(&members::PERSON_EMAIL, FieldKind::Email),
                FormField::text(&members::PERSON_NAME),
                FormField::of(&members::PERSON_ROLE, FieldKind::Select(roles)),
            ])
            .fields(wallet)
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let email: EmailAddress = sent.fields.require("email")?;
        let name: Option<Name> = sent.fields.read("name")?;
        let role = sent.fields.get("role").and_then(Role::from_label);
        let role = role.ok_or_else(|| Failure::field("role", "Choose a role."))?;
        let (accounts, principal) = (visit.accounts(), visit.principal());
        let reach = match principal.reach {
            // The field is not even read: no text in it can give a role for another wallet.
            own @ Reach::Wallet(_) => own,
            Reach::All => reach_of(visit, &sent.fields, role).await?,
        };
        let new = NewInvitation { email, name, role, reach };
        let made = accounts.invite_person(principal, &sent.request, &new).await?.thing;
        Ok(linked(visit, &made, &[role]))
    }
}

/// The reach of a role that is given by a person with all wallets.
async fn reach_of(visit: &Visit, fields: &SentFields, role: Role) -> Result<Reach, Failure> {
    match reference::wallet(visit, fields).await? {
        None if role.is_holder() => Err(Failure::field(WALLET, FieldRefusal::WalletMissing)),
        Some(_) if !role.is_holder() => Err(Failure::field(WALLET, FieldRefusal::WalletNotAllowed)),
        None => Ok(Reach::All),
        Some(wallet) => Ok(Reach::Wallet(wallet)),
    }
}

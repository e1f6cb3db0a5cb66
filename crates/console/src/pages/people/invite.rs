//! The form that invites somebody to one role.

use async_trait::async_trait;
use holdfast_accounts::{Name, NewInvitation, Reference, Request};
use holdfast_domain::account::{Authority, EmailAddress, Reach, Role, UseCase};

use crate::ask::Fields;
use crate::failure::Failure;
use crate::field::{Choice, Field, FieldKind};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::page::Page;
use crate::pages::people::{address, told};

/// The form, for whoever invites.
#[derive(Debug)]
pub(crate) struct Invite {
    grantor: Authority,
}

impl Invite {
    /// Roles that may be given.
    fn roles(&self) -> impl Iterator<Item = Role> {
        let role = self.grantor.role;
        Role::ALL.into_iter().filter(move |other| role.may_grant(*other))
    }
}

#[async_trait]
impl FormPage for Invite {
    const USE_CASE: UseCase = UseCase::PersonInvite;
    const PRIVATE: &'static [&'static str] = &["email", "name"];

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { grantor: sheet.visitor.principal.authority() })
    }

    fn frame(&self) -> FormFrame {
        let roles = self.roles().map(|role| Choice::new(role.label(), role.label())).collect();
        let mut fields = vec![
            Field::new("email", "E-mail address", FieldKind::Email),
            Field::optional("name", "Name", FieldKind::Text),
            Field::new("role", "Role", FieldKind::Select(roles)),
        ];
        if self.grantor.reach == Reach::All {
            let hint = "Name or id, for the roles of a holder alone.";
            fields.push(Field::optional("wallet", "Wallet", FieldKind::Text).hint(hint));
        }
        FormFrame {
            page: Page::new("Invite somebody").below("People", "/people").intro(
                "Nothing is sent: you get a link, and hand it over. Who is there already signs in and accepts \
                 the role.",
            ),
            fields,
            submit: "Invite".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &Fields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let email: EmailAddress = fields.want("email")?;
        let name: Option<Name> = fields.read("name")?;
        let role = fields.get("role").and_then(Role::from_label);
        let role = role.ok_or_else(|| Failure::field("role", "Choose a role."))?;
        let (accounts, principal) = (&sheet.desk.accounts, &sheet.visitor.principal);
        let wallet: Option<Reference> = fields.read("wallet")?;
        let reach = match (principal.reach, wallet) {
            (own @ Reach::Wallet(_), _) => own,
            (Reach::All, None) if role.is_holder() => {
                return Err(Failure::field("wallet", "Name the wallet that the role is for."));
            }
            (Reach::All, Some(_)) if !role.is_holder() => {
                return Err(Failure::field("wallet", "Only a holder's role is for a wallet."));
            }
            (Reach::All, None) => Reach::All,
            (Reach::All, Some(wallet)) => {
                Reach::Wallet(accounts.wallet(principal, &wallet).await?.wallet.id)
            }
        };
        let new = NewInvitation { email, name, role, reach };
        let made = accounts.invite_person(principal, request, &new).await?.thing;
        Ok(match &made.link {
            Some(token) => {
                let (notice, link) = told(sheet, token, &[role]);
                FormOutcome::done().section(notice).section(link).telling_once()
            }
            None => FormOutcome::done().next(address(made.person)),
        })
    }
}

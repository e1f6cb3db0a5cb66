//! Words of the forms of changes: title, effect, button, and the sentence after the change.
//!
//! Each use case has one form, and the table `FORMS` one row for it. A second form of a use case has a word of its own.
//! The forms of [`VERBS`] take their words from the verb.

use holdfast_domain::admin::{ResourceId, UseCase};

use super::VERBS;

/// Words of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormWords {
    /// Use case.
    pub use_case: UseCase,
    /// Word in addresses; unset: the label of the use case.
    word: Option<&'static str>,
    /// Title, before the name of the resource if the title has one.
    pub title: &'static str,
    /// Effect, as the form explains it.
    pub hint: &'static str,
    /// Text of the button.
    pub submit: &'static str,
    /// Rest of the sentence about the resource after the change, after a blank or its own colon.
    done: &'static str,
    /// True if the button warns by color: the change cannot be undone.
    pub is_grave: bool,
}

/// Cancels a queued ledger check: the second form of its use case.
pub const CANCEL_CHECK: FormWords = FormWords {
    word: Some("job.cancel"),
    hint: "Only a queued ledger check can be cancelled; one that a node has started runs to its end.",
    is_grave: true,
    ..form(UseCase::JobCreate, ["Cancel the ledger check", "Cancel the ledger check", "cancelled"])
};

/// Ends one role of a person: the second form of its use case.
pub const END_ROLE: FormWords = FormWords {
    word: Some("person.end_role"),
    hint: "Sessions that use the role end now, and so does an open invitation to it.",
    is_grave: true,
    ..form(UseCase::PersonEnd, ["End a role", "End the role", ": one role ended"])
};

/// Forms beside those of [`VERBS`].
const FORMS: [FormWords; 25] = [
    form(UseCase::WalletCreate, ["Create a wallet", "Create the wallet", "created"]),
    form(UseCase::WalletUpdate, ["Edit", "Save", "updated"]),
    FormWords {
        hint: "Permanent: a closed wallet accepts no money and no keys, and its API keys are revoked. Only an empty \
               wallet can be closed.",
        is_grave: true,
        ..form(UseCase::WalletClose, ["Close", "Close the wallet", "closed"])
    },
    form(UseCase::PostingDeposit, ["Deposit to", "Deposit", "made"]),
    form(UseCase::PostingAdjust, ["Adjust", "Adjust", "made"]),
    form(UseCase::PostingRefund, ["Refund a request", "Refund", "made"]),
    FormWords {
        hint: "Ends the request. Usage up to that moment is charged; a request that has ended stays as it is.",
        is_grave: true,
        ..form(
            UseCase::OperationCancel,
            ["Cancel request", "Cancel the request", ": cancellation recorded"],
        )
    },
    FormWords {
        hint: "Ends a request whose node is gone, and settles one whose answer was recorded. A running request stays \
               as it is.",
        ..form(
            UseCase::OperationReconcile,
            ["Reconcile request", "Reconcile the request", "reconciled"],
        )
    },
    FormWords {
        hint: "A ledger check reads and adds up the whole ledger while requests run. Its page shows the progress.",
        ..form(UseCase::JobCreate, ["Verify the ledger", "Start the ledger check", "created"])
    },
    CANCEL_CHECK,
    form(UseCase::ApiKeyIssue, ["Issue an API key", "Issue the key", "issued"]),
    form(UseCase::ApiKeyUpdate, ["Edit", "Save", "updated"]),
    FormWords {
        hint: "Gives the key a new secret. Its limits, and the results of its requests, stay.",
        ..form(UseCase::ApiKeyRotate, ["Rotate", "Rotate the key", "rotated"])
    },
    form(UseCase::AdminKeyIssue, ["Issue an admin key", "Issue the key", "issued"]),
    FormWords {
        hint: "Gives the key a new secret, shown once. Its role and its id stay.",
        ..form(UseCase::AdminKeyRotate, ["Rotate", "Rotate the key", "rotated"])
    },
    FormWords {
        hint: "Permanent: the key is rejected from now on. Its name stays in the audit log.",
        is_grave: true,
        ..form(UseCase::AdminKeyRevoke, ["Revoke", "Revoke the key", "revoked"])
    },
    FormWords {
        hint: "No e-mail is sent: hand over the link on the next page. A person who has an account signs in and \
               accepts the role.",
        ..form(UseCase::PersonInvite, ["Invite a person", "Invite", "invited"])
    },
    FormWords {
        hint: "Earlier links stop working. An existing password and all sessions end now, and the person sets a new \
               password through the link.",
        ..form(UseCase::PersonLink, ["Create a new link", "Create the link", "has a new link"])
    },
    FormWords {
        hint: "All roles and sessions of the person end now. This cannot be undone.",
        is_grave: true,
        ..form(UseCase::PersonEnd, ["End a person", "End", "ended"])
    },
    END_ROLE,
    form(UseCase::WebhookCreate, ["Create a webhook", "Create the webhook", "created"]),
    form(UseCase::WebhookUpdate, ["Edit the webhook", "Save", "updated"]),
    FormWords {
        hint: "The new secret is shown once. Both secrets sign deliveries for one day.",
        ..form(
            UseCase::WebhookRotate,
            ["Rotate the secret", "Rotate the secret", ": secret rotated"],
        )
    },
    FormWords {
        hint: "Sends an event of the kind webhook.test, at most six per minute.",
        ..form(UseCase::WebhookTest, ["Send a test", "Send a test", ": test event created"])
    },
    FormWords {
        hint: "Sends the same event under the same id, by which a receiver recognizes it.",
        ..form(
            UseCase::WebhookResend,
            ["Send the delivery again", "Send again", ": delivery requested again"],
        )
    },
];

const fn form(use_case: UseCase, [title, submit, done]: [&'static str; 3]) -> FormWords {
    FormWords { use_case, word: None, title, hint: "", submit, done, is_grave: false }
}

impl FormWords {
    /// The first form of a use case.
    #[must_use]
    pub fn of(use_case: UseCase) -> Option<Self> {
        let own = FORMS.into_iter().find(|it| it.word.is_none() && it.use_case == use_case);
        own.or_else(|| {
            let verb = VERBS.iter().find(|verb| verb.use_case == use_case)?;
            let words = form(use_case, [verb.title, verb.title, verb.done]);
            Some(Self { hint: verb.hint, is_grave: verb.is_grave, ..words })
        })
    }

    /// The form with this word of an address.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let own = FORMS.into_iter().find(|it| it.word == Some(word));
        own.or_else(|| Self::of(UseCase::from_label(word)?))
    }

    /// Word of the form in an address.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self.word {
            Some(word) => word,
            None => self.use_case.label(),
        }
    }

    /// True for a resource of the kind that the use case changes.
    #[must_use]
    pub fn is_of(self, thing: ResourceId) -> bool {
        self.use_case.label().split_once('.').is_some_and(|(kind, _act)| kind == thing.kind())
    }

    /// The sentence about a resource after the change.
    #[must_use]
    pub fn sentence(self, resource: &str) -> String {
        let joint = if self.done.starts_with(':') { "" } else { " " };
        format!("{resource}{joint}{}.", self.done)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_word_of_an_address_leads_to_its_own_form() {
        let words: BTreeSet<_> = FORMS.iter().map(|it| it.word()).collect();
        assert_eq!(words.len(), FORMS.len());
        for form in FORMS {
            assert_eq!(FormWords::named(form.word()), Some(form), "{}", form.word());
        }
    }
}

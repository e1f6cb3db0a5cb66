//! Outcomes of forms: the word that the address of the next page has, and the sentence that this page begins with.
//!
//! A form has the outcome of its use case, unless several forms share one: then it names its own
//! ([`FormPage::DONE`](crate::kit::form::FormPage::DONE)).

use holdfast_accounts::VERBS;
use holdfast_domain::admin::{ResourceId, UseCase};

/// Outcome of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) use_case: UseCase,
    /// Word of an outcome that is not the only one of its use case.
    word: Option<&'static str>,
    /// Characters between the resource and the rest of the sentence.
    joint: &'static str,
    done: &'static str,
}

pub(crate) const CHECK_CANCELLED: Outcome =
    Outcome { word: Some("job.cancel"), ..past(UseCase::JobCreate, "cancelled") };
pub(crate) const ROLE_ENDED: Outcome =
    Outcome { word: Some("person.end_role"), ..noted(UseCase::PersonEnd, "one role ended") };

/// Outcomes beside those of [`VERBS`].
const OUTCOMES: [Outcome; 25] = [
    past(UseCase::WalletCreate, "created"),
    past(UseCase::WalletUpdate, "updated"),
    past(UseCase::WalletClose, "closed"),
    past(UseCase::PostingDeposit, "made"),
    past(UseCase::PostingAdjust, "made"),
    past(UseCase::PostingRefund, "made"),
    noted(UseCase::OperationCancel, "cancellation recorded"),
    past(UseCase::OperationReconcile, "reconciled"),
    past(UseCase::JobCreate, "created"),
    CHECK_CANCELLED,
    past(UseCase::ApiKeyIssue, "issued"),
    past(UseCase::ApiKeyUpdate, "updated"),
    past(UseCase::ApiKeyRotate, "rotated"),
    past(UseCase::AdminKeyIssue, "issued"),
    past(UseCase::AdminKeyRotate, "rotated"),
    past(UseCase::AdminKeyRevoke, "revoked"),
    past(UseCase::PersonInvite, "invited"),
    past(UseCase::PersonLink, "has a new link"),
    past(UseCase::PersonEnd, "ended"),
    ROLE_ENDED,
    past(UseCase::WebhookCreate, "created"),
    past(UseCase::WebhookUpdate, "updated"),
    noted(UseCase::WebhookRotate, "secret rotated"),
    noted(UseCase::WebhookTest, "test event made"),
    noted(UseCase::WebhookResend, "event to be sent again"),
];

const fn past(use_case: UseCase, done: &'static str) -> Outcome {
    Outcome { use_case, word: None, joint: " ", done }
}

const fn noted(use_case: UseCase, done: &'static str) -> Outcome {
    Outcome { use_case, word: None, joint: ": ", done }
}

impl Outcome {
    /// The outcome of a use case that one form has.
    pub(crate) fn of(use_case: UseCase) -> Option<Self> {
        let own = OUTCOMES.into_iter().find(|it| it.word.is_none() && it.use_case == use_case);
        own.or_else(|| {
            let verb = VERBS.iter().find(|verb| verb.use_case == use_case)?;
            Some(past(use_case, verb.done))
        })
    }

    /// The outcome of this word of an address.
    pub(crate) fn named(word: &str) -> Option<Self> {
        let own = OUTCOMES.into_iter().find(|it| it.word == Some(word));
        own.or_else(|| Self::of(UseCase::from_label(word)?))
    }

    /// Word of the outcome in an address.
    pub(crate) const fn word(self) -> &'static str {
        match self.word {
            Some(word) => word,
            None => self.use_case.label(),
        }
    }

    /// True for a resource of the kind that the use case changes.
    pub(crate) fn is_of(self, thing: ResourceId) -> bool {
        self.use_case.label().split_once('.').is_some_and(|(kind, _act)| kind == thing.kind())
    }

    /// The sentence about a resource.
    pub(crate) fn sentence(self, resource: &str) -> String {
        format!("{resource}{}{}.", self.joint, self.done)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every form of the pages has an outcome, whose word leads back to it.
    #[test]
    fn every_form_has_an_outcome_of_its_own() {
        let pages = include_str!("../pages.rs");
        let forms = pages.split("methods::<").skip(1).filter(|it| !it.starts_with("VerbForm"));
        let forms: Vec<_> = forms
            .map(|form| {
                let (form, rest) = form.split_once(">(UseCase::").unwrap();
                let (name, _rest) = rest.split_once(')').unwrap();
                (form, UseCase::ALL.iter().find(|it| format!("{it:?}") == name).unwrap())
            })
            .collect();
        assert!(forms.len() > 20, "{forms:?}");
        for (form, use_case) in &forms {
            let own = Outcome::of(**use_case).unwrap_or_else(|| panic!("{form} has no outcome"));
            assert_eq!(Outcome::named(own.word()), Some(own), "{form}");
        }
        // Forms beyond the first of a use case name theirs.
        let of_use_cases: BTreeSet<_> = forms.iter().map(|(_form, it)| it.label()).collect();
        let named = OUTCOMES.iter().filter(|it| it.word.is_some()).count();
        assert_eq!(forms.len() - of_use_cases.len(), named, "{forms:?}");
        let words: BTreeSet<_> = OUTCOMES.iter().map(|it| it.word()).collect();
        assert_eq!(words.len(), OUTCOMES.len());
    }
}

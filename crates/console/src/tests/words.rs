//! Words of the forms: each form that the pages have has words of its own, since one without them is not found.

use std::collections::BTreeSet;

use holdfast_accounts::FormWords;
use holdfast_accounts::verbs::forms::{CANCEL_CHECK, END_ROLE};
use holdfast_domain::admin::UseCase;

/// Words of the forms that share their use case with another one.
const NAMED: [FormWords; 2] = [CANCEL_CHECK, END_ROLE];

/// Types and use cases of the forms of all pages but those of verbs, as the routes name them.
fn forms() -> Vec<(&'static str, UseCase)> {
    let pages = include_str!("../pages.rs");
    let forms = pages.split("methods::<").skip(1).filter(|it| !it.starts_with("VerbForm"));
    let read = |form: &'static str| {
        let (form, rest) = form.split_once(">(UseCase::").unwrap();
        let (name, _rest) = rest.split_once(')').unwrap();
        let use_case = UseCase::ALL.iter().find(|it| format!("{it:?}") == name).unwrap();
        (form, *use_case)
    };
    forms.map(read).collect()
}

#[test]
fn every_form_of_the_pages_has_words_and_every_second_one_of_a_use_case_its_own() {
    let forms = forms();
    assert!(forms.len() > 20, "{forms:?}");
    for (form, use_case) in &forms {
        let words = FormWords::of(*use_case).unwrap_or_else(|| panic!("{form} has no words"));
        assert_eq!(FormWords::named(words.word()), Some(words), "{form}");
    }
    // Forms beyond the first of a use case name theirs.
    let of_use_cases: BTreeSet<_> = forms.iter().map(|(_form, it)| it.label()).collect();
    assert_eq!(forms.len() - of_use_cases.len(), NAMED.len(), "{forms:?}");
    let words: BTreeSet<_> =
        of_use_cases.iter().copied().chain(NAMED.map(FormWords::word)).collect();
    assert_eq!(words.len(), forms.len(), "{forms:?}");
    for named in NAMED {
        let of_its_use_case = forms.iter().filter(|(_form, it)| *it == named.use_case);
        assert_eq!(of_its_use_case.count(), 2, "{}", named.word());
        assert_ne!(FormWords::of(named.use_case), Some(named), "{}", named.word());
    }
}

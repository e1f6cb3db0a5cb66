//! Fields of forms and filters: a label, what may be written, and what is wrong with what was.

use std::collections::BTreeSet;

use askama::Template;
use holdfast_accounts::fields::members::{self, Member};

use crate::failure::Failure;
use crate::kit::SentFields;

/// Field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(path = "field.html")]
pub(crate) struct FormField {
    pub(crate) name: &'static str,
    pub(crate) label: String,
    pub(crate) kind: FieldKind,
    pub(crate) value: String,
    /// Sentence below the field: the expected value.
    pub(crate) hint: String,
    pub(crate) error: Option<String>,
    pub(crate) is_required: bool,
    /// Values that a browser suggests while a text is typed.
    pub(crate) suggestions: BTreeSet<String>,
}

/// Kind of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// A line of text.
    Text,
    /// Decimal units of a currency.
    Amount,
    /// A whole number.
    Number,
    /// An e-mail address.
    Email,
    /// A password that is there, or a new one.
    Password { is_new: bool },
    /// A secret that a visitor pastes, and that no browser keeps.
    Secret,
    /// Lines of text.
    Area,
    /// A moment in UTC, as `YYYY-MM-DDTHH:MM`.
    Moment,
    /// A month in UTC, as `YYYY-MM`.
    Month,
    /// A choice of one.
    Select(Vec<Choice>),
    /// Any of these; its value has those that are chosen, each on a line.
    Checks(Vec<Choice>),
    /// A hidden value.
    Hidden,
    /// Hidden values, each on a line: those of [`FieldKind::Checks`].
    HiddenList,
}

impl FieldKind {
    /// A choice of one of these labels, or of none under this word.
    pub(crate) fn any_of<'a>(none: &str, labels: impl IntoIterator<Item = &'a str>) -> Self {
        Self::none_or(none, labels.into_iter().map(|label| (label, label)))
    }

    /// A choice of one of these values with their labels, or of none under this word.
    pub(crate) fn none_or<'a>(
        none: &str,
        choices: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let choices = choices.into_iter().map(|(value, label)| Choice::new(value, label));
        Self::Select(std::iter::once(Choice::new("", none)).chain(choices).collect())
    }

    /// Attributes of the input that takes it.
    const fn attributes(&self) -> &'static str {
        match self {
            Self::Amount => {
                r#"type="text" inputmode="decimal" autocomplete="off" placeholder="10.00""#
            }
            Self::Number => r#"type="text" inputmode="numeric" autocomplete="off""#,
            Self::Email => r#"type="email" autocomplete="username""#,
            Self::Password { is_new: false } => {
                r#"type="password" autocomplete="current-password""#
            }
            Self::Password { is_new: true } => {
                r#"type="password" autocomplete="new-password" minlength="12" maxlength="256""#
            }
            Self::Secret => r#"type="password" autocomplete="off" spellcheck="false" data-secret"#,
            Self::Moment => r#"type="datetime-local""#,
            Self::Month => r#"type="month""#,
            Self::Text
            | Self::Area
            | Self::Select(_)
            | Self::Checks(_)
            | Self::Hidden
            | Self::HiddenList => r#"type="text" autocomplete="off" dir="auto""#,
        }
    }
}

/// Puts a failure beside the field that it is about, and answers the sentence that stands above all of them.
pub(crate) fn put_beside(fields: &mut [FormField], failure: Failure) -> String {
    let wrong = fields.iter_mut().find(|field| Some(field.name) == failure.field.as_deref());
    let Some(field) = wrong else { return failure.message };
    let text = format!("{}: {}", field.label, failure.message);
    field.error = Some(failure.message);
    text
}

/// A value to choose, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) label: String,
}

impl Choice {
    pub(crate) fn new(value: impl Into<String>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into() }
    }
}

impl FormField {
    /// A field that must be filled in.
    pub(crate) fn new(name: &'static str, label: &str, kind: FieldKind) -> Self {
        Self {
            name,
            label: label.to_owned(),
            kind,
            value: String::new(),
            hint: String::new(),
            error: None,
            is_required: true,
            suggestions: BTreeSet::new(),
        }
    }

    /// A field that may stay empty.
    pub(crate) fn optional(name: &'static str, label: &str, kind: FieldKind) -> Self {
        Self { is_required: false, ..Self::new(name, label, kind) }
    }

    /// A field of a filter, with what the query has.
    pub(crate) fn sought(
        name: &'static str,
        label: &str,
        kind: FieldKind,
        query: &SentFields,
    ) -> Self {
        Self::optional(name, label, kind).value(query.raw(name))
    }

    /// The field of a member.
    pub(crate) fn of(member: &Member, kind: FieldKind) -> Self {
        let Member { name, label, hint, is_required } = *member;
        Self { is_required, ..Self::new(name, label, kind).hint(hint) }
    }

    /// A line of text for a member.
    pub(crate) fn text(member: &Member) -> Self {
        Self::of(member, FieldKind::Text)
    }

    /// Optional reason for a change.
    pub(crate) fn reason() -> Self {
        Self::text(&members::REASON)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    pub(crate) fn value(self, value: impl Into<String>) -> Self {
        Self { value: value.into(), ..self }
    }

    /// The same with values to choose from; another one may be typed as well.
    pub(crate) fn suggesting(self, values: impl IntoIterator<Item = String>) -> Self {
        Self { suggestions: values.into_iter().collect(), ..self }
    }

    /// The same with what was sent; a password or another secret is written anew each time.
    pub(crate) fn holding(self, sent: &SentFields) -> Self {
        let value = if matches!(self.kind, FieldKind::Password { .. } | FieldKind::Secret) {
            String::new()
        } else if self.is_checks() {
            sent.all(self.name).collect::<Vec<_>>().join("\n")
        } else {
            sent.raw(self.name).to_owned()
        };
        Self { value, ..self }
    }

    /// The value as the field shows it: a choice by its label.
    pub(crate) fn shown_value(&self) -> &str {
        let FieldKind::Select(choices) = &self.kind else { return &self.value };
        let chosen = choices.iter().find(|it| it.value == self.value);
        chosen.map_or(&self.value, |choice| &choice.label)
    }

    /// The same, carried along unseen.
    pub(crate) fn hidden(self) -> Self {
        let kind = if self.is_checks() { FieldKind::HiddenList } else { FieldKind::Hidden };
        Self { kind, ..self }
    }

    /// A value that is carried along unseen.
    pub(crate) fn hidden_value(name: &'static str, value: &str) -> Self {
        Self::new(name, "", FieldKind::Hidden).value(value)
    }

    /// These parameters of a query, carried along unseen: a form sends its own fields only.
    pub(crate) fn carried(query: &SentFields, names: &[&'static str]) -> Vec<Self> {
        let chosen = names.iter().filter_map(|name| Some((name, query.get(name)?)));
        let hidden =
            |(name, _): (&&'static str, &str)| Self::sought(name, name, FieldKind::Hidden, query);
        chosen.map(hidden).collect()
    }

    /// True if its value has a line for each choice.
    const fn is_checks(&self) -> bool {
        matches!(self.kind, FieldKind::Checks(_))
    }

    /// The chosen values, once each: a set, because each choice is looked up in it.
    fn chosen(&self) -> BTreeSet<&str> {
        self.value.lines().filter(|line| !line.is_empty()).collect()
    }

    /// Id of the element with the refusal, or else with the hint.
    fn described_by(&self) -> String {
        match (&self.error, self.hint.is_empty()) {
            (Some(_), _) => format!("{}-error", self.name),
            (None, false) => format!("{}-hint", self.name),
            (None, true) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_form_with_many_choices_is_rendered_in_time_that_grows_with_them() {
        let choices: Vec<_> = (0..20_000).map(|n| Choice::new(format!("acme/{n}"), "x")).collect();
        let values: Vec<_> = choices.iter().map(|choice| choice.value.clone()).collect();
        let field = FormField::new("models", "Models", FieldKind::Checks(choices));
        let field = field.value(values.join("\n"));
        let begun = Instant::now();
        let html = field.render().unwrap();
        // Each choice looked up in all lines: 400,000,000 comparisons, a minute and more.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(html.matches(" checked").count(), 20_000);
    }

    #[test]
    fn a_field_suggests_each_value_once_and_takes_others() {
        let field = FormField::optional("wallet", "Wallet", FieldKind::Text).value("x");
        assert!(!field.to_string().contains("list"), "{field}");
        let names = ["acme", "<b>", "acme"].map(str::to_owned);
        let html = field.suggesting(names).to_string();
        assert!(html.contains(" list=\"wallet-list\" value=\"x\""), "{html}");
        let list = "<datalist id=\"wallet-list\"><option dir=\"auto\" value=\"&#60;b&#62;\"></option><option dir=\"auto\" value=\"acme\"></option></datalist>";
        assert!(html.contains(list), "{html}");
    }

    #[test]
    fn what_a_review_carries_along_is_as_large_as_what_was_sent() {
        let sent = SentFields::parse(format!("note={}x", "%0A".repeat(20_000)).as_bytes());
        let field = FormField::optional("note", "Note", FieldKind::Text).holding(&sent).hidden();
        let html = field.render().unwrap();
        assert_eq!(html.matches("<input").count(), 1);
        assert!(html.len() < 21_000, "{}", html.len());
        let checks = FieldKind::Checks(vec![Choice::new("a", "a"), Choice::new("b", "b")]);
        let sent = SentFields::parse(format!("m=a&m=b{}", "&m=a%0A%0A".repeat(5_000)).as_bytes());
        let html = FormField::optional("m", "M", checks).holding(&sent).hidden().render().unwrap();
        assert_eq!(html.matches("<input").count(), 2, "each value once");
        let text = FormField::optional("t", "T", FieldKind::Text);
        let html = text.holding(&SentFields::parse(b"t=")).hidden().render().unwrap();
        assert_eq!(html, "<input type=\"hidden\" name=\"t\" value=\"\">");
    }
}

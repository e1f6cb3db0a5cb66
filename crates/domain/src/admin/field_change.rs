//! Changes of fields, as the audit log has them: names and texts, the same for every resource.

use std::fmt;

use super::ResourceId;
use crate::{CredentialId, Timestamp};

/// Change of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// Name of the field, as in answers.
    pub field: String,
    /// Value before; `None` if there was none.
    pub before: Option<String>,
    /// Value after; `None` if there is none.
    pub after: Option<String>,
}

impl FieldChange {
    /// A field that had no value before.
    pub(crate) fn set(field: &str, after: impl fmt::Display) -> Self {
        Self { field: field.to_owned(), before: None, after: Some(after.to_string()) }
    }

    /// Changes of a key that gets a further credential.
    pub(super) fn rotation(credential: CredentialId, others_end_at: Timestamp) -> Vec<Self> {
        let end = Self::set("others_end_at", others_end_at.as_micros());
        vec![Self::set("credential_id", credential), end]
    }
}

/// Fields with their values, as the audit log has them.
pub type Fields = Vec<(&'static str, Option<String>)>;

/// Record of a resource that the audit log tracks.
pub trait TrailFields: PartialEq + Sized {
    /// The resource.
    fn thing(&self) -> ResourceId;

    /// Fields that the audit log compares.
    fn trail_fields(&self) -> Fields;

    /// Changes up to another state.
    fn changes(&self, after: &Self) -> Vec<FieldChange> {
        differences(Some(self.trail_fields()), after.trail_fields())
    }
}

/// A moment as the audit log has it.
pub(super) fn moment(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.as_micros().to_string())
}

/// The fields that differ. Of a new resource all that have a value.
pub(super) fn differences(before: Option<Fields>, after: Fields) -> Vec<FieldChange> {
    let before = before.unwrap_or_else(|| after.iter().map(|(field, _)| (*field, None)).collect());
    // Paired by place: both lists are made by one function of one type.
    let pairs = before.into_iter().zip(after);
    let changes = pairs.filter(|((_, before), (_, after))| before != after);
    changes
        .map(|((field, before), (_, after))| FieldChange { field: field.to_owned(), before, after })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told_and_of_new_things_all_that_they_have() {
        let field = |name, value: Option<&str>| (name, value.map(str::to_owned));
        let after = vec![field("a", Some("1")), field("b", None), field("c", Some("3"))];
        let new: Vec<_> = differences(None, after.clone()).into_iter().map(|it| it.field).collect();
        assert_eq!(new, ["a", "c"]);
        let before = vec![field("a", Some("1")), field("b", Some("2")), field("c", None)];
        let changed = differences(Some(before), after);
        assert_eq!(changed.len(), 2);
        assert_eq!((changed[0].before.as_deref(), changed[0].after.as_deref()), (Some("2"), None));
    }
}

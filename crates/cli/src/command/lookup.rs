//! Resources that a command names, and the names that are like one that was not found.

use holdfast_accounts::Reference;
use serde_json::Value;

use super::CommandContext;
use crate::failure::{CommandFailure, Refusal, Result};
use crate::view::some_text;

// The suggestion is a courtesy after a failure: it must not read a list of any length.
/// Count of resources whose names are compared, the newest.
const COMPARED_MAX: usize = 1_000;
/// Count of names that are offered.
const OFFERED_MAX: usize = 3;
/// Likeness from which a name is offered, of 1 for the same.
const ALIKE: f64 = 0.8;

/// Resources of one kind, which people name.
pub(super) struct Lookup {
    pub(super) path: &'static str,
    /// Name of one resource in a sentence.
    pub(super) thing: &'static str,
    /// Command that lists all.
    pub(super) list: &'static str,
}

impl Lookup {
    /// The resource of this id or name. Names of API keys are unique only within a wallet: one that several have is
    /// a failure.
    pub(super) async fn find(
        &self,
        context: &CommandContext<'_>,
        reference: &Reference,
    ) -> Result<Value> {
        let thing = self.thing;
        let found = context.client.named(self.path, reference).await;
        let nothing = format!("the {thing} was not looked up");
        let mut found = found.map_err(|error| error.because(&nothing))?;
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            (Some(_), false) => {
                let message = format!("more than one {thing} has the name {reference}: use an id");
                Err(Refusal::failed("ambiguous_name", message))
            }
            (None, _) => Err(self.missing(context, reference).await),
        }
    }

    /// The failure of a name that no resource has, with the names that are like it.
    async fn missing(&self, context: &CommandContext<'_>, reference: &Reference) -> CommandFailure {
        let Self { path, thing, list } = self;
        let names = match reference {
            Reference::Id(_) => Vec::new(),
            Reference::Name(sought) => {
                // Without a list there is no suggestion: the answer is that the name does not exist.
                let listed = context.client.list(path, &[], Some(COMPARED_MAX)).await;
                let rows = listed.map_or_else(|_unlisted| Vec::new(), |listed| listed.rows);
                let has_ended = |row: &&Value| {
                    ["revoked_at", "closed_at"].iter().any(|it| some_text(row, it).is_some())
                };
                let rows = rows.iter().filter(|row| !has_ended(row));
                alike(sought.as_str(), rows.filter_map(|row| some_text(row, "name")))
            }
        };
        let offer = match names.as_slice() {
            [] => String::new(),
            names => format!("; did you mean {}?", names.join(" or ")),
        };
        let text = format!("there is no {thing} {reference}{offer} (`{list}` shows all)");
        Refusal::failed("not_found", text)
    }
}

/// The names that are most like one, the most like first.
fn alike(sought: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let sought = sought.to_lowercase();
    let mut scored: Vec<(f64, String)> = names
        .map(|name| (strsim::jaro_winkler(&sought, &name.to_lowercase()), name))
        .filter(|(score, _name)| *score >= ALIKE)
        .collect();
    scored.sort_by(|(one, first), (other, second)| other.total_cmp(one).then(first.cmp(second)));
    scored.dedup_by(|(_, one), (_, other)| one == other);
    scored.into_iter().take(OFFERED_MAX).map(|(_score, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_alike_are_offered_the_most_alike_first() {
        let names = ["acme", "Acme-EU", "umbrella", "acne", "acme"].map(str::to_owned);
        for (sought, offered) in [
            ("akme", &["acme"][..]),
            ("ACME", &["acme", "Acme-EU", "acne"]),
            ("umbrela", &["umbrella"]),
            ("zzz", &[]),
        ] {
            assert_eq!(alike(sought, names.clone().into_iter()), offered, "{sought}");
        }
    }
}

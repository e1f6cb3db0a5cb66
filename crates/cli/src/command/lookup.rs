//! Things that a command names, and the names that are like one that was not found.

use holdfast_accounts::Reference;
use serde_json::Value;

use super::Desk;
use crate::failure::{CommandFailure, Refusal, Result};
use crate::view::some_text;

/// Count of things whose names are compared, the newest.
const COMPARED_MAX: usize = 1_000;
/// Count of names that are offered.
const OFFERED_MAX: usize = 3;
/// Likeness from which a name is offered, of 1 for the same.
const ALIKE: f64 = 0.8;

/// Things of one kind, which people name.
pub(super) struct Lookup {
    pub(super) path: &'static str,
    /// Name of one thing in a sentence.
    pub(super) thing: &'static str,
    /// Command that lists all.
    pub(super) list: &'static str,
}

impl Lookup {
    /// The things of this id or name; several only if names are unique within a wallet.
    pub(super) async fn find(&self, desk: &Desk<'_>, reference: &Reference) -> Result<Vec<Value>> {
        let found = desk.door.named(self.path, reference).await;
        let found = found.map_err(|error| error.because(&self.nothing()))?;
        if found.is_empty() { Err(self.missing(desk, reference).await?) } else { Ok(found) }
    }

    fn nothing(&self) -> String {
        format!("the {} was not looked up", self.thing)
    }

    /// The failure of a name that nothing has, with the names that are like it.
    async fn missing(&self, desk: &Desk<'_>, reference: &Reference) -> Result<CommandFailure> {
        let Self { path, thing, list } = self;
        let names = match reference {
            Reference::Id(_) => Vec::new(),
            Reference::Name(sought) => {
                let listed = desk.door.list(path, &[], Some(COMPARED_MAX)).await;
                let listed = listed.map_err(|error| error.because(&self.nothing()))?.rows;
                let names = listed.iter().filter_map(|row| some_text(row, "name"));
                alike(sought.as_str(), names)
            }
        };
        let offer = match names.as_slice() {
            [] => String::new(),
            names => format!("; did you mean {}?", names.join(" or ")),
        };
        let text = format!("there is no {thing} {reference}{offer} (`{list}` shows all)");
        let refusal = Refusal { code: "not_found".to_owned(), message: text };
        Ok(CommandFailure::Failed(refusal.into()))
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

//! Types have nouns for names: a participle by itself does not name a value.
//!
//! Judged by spelling, so approximately. A noun that ends as participles do is listed in [`FINE`].

use super::Finding;

/// Participles of verbs that do not end in -ed. A cut, a run and a read are nouns too.
const IRREGULAR: &[&str] = &[
    "Begun",
    "Born",
    "Bought",
    "Bound",
    "Broken",
    "Brought",
    "Built",
    "Caught",
    "Chosen",
    "Done",
    "Drawn",
    "Driven",
    "Fallen",
    "Felt",
    "Forgotten",
    "Found",
    "Frozen",
    "Given",
    "Gone",
    "Grown",
    "Heard",
    "Held",
    "Hidden",
    "Kept",
    "Known",
    "Laid",
    "Led",
    "Left",
    "Lent",
    "Lost",
    "Made",
    "Meant",
    "Met",
    "Paid",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Shut",
    "Sold",
    "Sought",
    "Spent",
    "Spoken",
    "Stolen",
    "Stood",
    "Taken",
    "Taught",
    "Thought",
    "Thrown",
    "Told",
    "Torn",
    "Understood",
    "Won",
    "Worn",
    "Written",
];

/// Words that end in -ed and are nouns.
const FINE: &[&str] = &["Bed", "Deed", "Feed", "Need", "Reed", "Seed", "Shed", "Speed", "Weed"];

const KEYWORDS: &[&str] = &["struct", "enum", "trait", "union", "type"];

/// Types of one file whose whole name is a participle.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !path.ends_with(".rs") {
        return Vec::new();
    }
    let named = text.lines().enumerate().filter_map(|(index, line)| Some((index, name(line)?)));
    let named = named.filter(|(_, name)| is_participle(name));
    let what = |name| format!("type {name} has a participle for a name: name the thing, by a noun");
    named.map(|(index, name)| Finding::at(path, index, what(name))).collect()
}

/// The type that a line declares. Types of traits are named by those traits.
fn name(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let is_inside = code.len() < line.len();
    let code = match code.strip_prefix("pub") {
        Some(rest) => match rest.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => rest,
        }
        .trim_start(),
        None => code,
    };
    let (keyword, rest) = code.split_once(' ')?;
    // A `type` with an indentation is a trait's own, whose name is given.
    if !KEYWORDS.contains(&keyword) || (keyword == "type" && is_inside) {
        return None;
    }
    rest.split(|it: char| !it.is_alphanumeric() && it != '_').next()
}

fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().filter(|it| it.is_uppercase()).count() == 1;
    let is_regular = is_one_word && name.len() > 3 && name.ends_with("ed");
    (is_regular && !FINE.contains(&name)) || IRREGULAR.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_line(line: &str, is_found: bool) {
        assert_eq!(!check("a.rs", line).is_empty(), is_found, "{line}");
    }

    #[test]
    fn participles_are_found() {
        for line in [
            "struct Told;",
            "pub(crate) enum Tried {",
            "    pub struct Kept<'a>(&'a str);",
            "pub trait Shared: Send {",
            "type Moved = u8;",
        ] {
            check_line(line, true);
        }
    }

    #[test]
    fn nouns_are_not() {
        for line in [
            "struct Feed;",
            "pub struct ReplyKept;",
            "enum LostReply {",
            "    type Rejected = E;",
            "let Told = 1;",
            "// struct Told",
            "impl Told {",
        ] {
            check_line(line, false);
        }
        assert_eq!(check("a.md", "struct Told;"), []);
    }
}

//! The project speaks of itself alone, and plainly: not of the machine it was written on, nor of how the work was
//! organized, nor in the words of an advertisement.
//!
//! Every forbidden word is spelled in halves here, so that this file may be checked by itself.

use super::{Finding, has_word};

/// Written by tools or by others.
const NOT_OURS: &[&str] = &["Cargo.lock", "LICENSE"];

/// Folders of one machine. They are found at the beginning of a path only.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Hosts that a build must not name: which registry is used is the user's configuration.
const HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js.org"),
    concat!("npm", "js.com"),
];

const WORDS: &[&str] = &[
    concat!("ai ", "agent"),
    concat!("coding ", "agent"),
    concat!("iss", "ue #"),
    concat!("as ", "requested"),
    concat!("blaz", "ing"),
    concat!("seam", "less"),
    concat!("seam", "lessly"),
    concat!("production", "-ready"),
];

/// Words with another meaning when a number follows.
const NUMBERED: &[&str] = &[concat!("ses", "sion "), concat!("iss", "ue ")];

/// Forbidden words of one file.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    if NOT_OURS.contains(&path) || path.contains("/fixtures/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(word) = forbidden(&line.to_lowercase()) {
            findings.push(Finding::at(path, index, format_args!("says \"{}\"", word.trim())));
        }
    }
    findings
}

fn forbidden(line: &str) -> Option<&'static str> {
    let mut folders = FOLDERS.iter().filter(|folder| begins_a_path(line, folder));
    let mut hosts = HOSTS.iter().filter(|host| line.contains(**host));
    let mut words = WORDS.iter().filter(|word| has_word(line, word));
    let mut numbered = NUMBERED.iter().filter(|word| is_followed_by_number(line, word));
    let found = folders.next().or_else(|| hosts.next()).or_else(|| words.next());
    found.or_else(|| numbered.next()).copied()
}

fn begins_a_path(line: &str, folder: &str) -> bool {
    // A folder of the repository may be called so; only a path from the root is a machine's.
    let is_inside = |it: char| it.is_alphanumeric() || "._-~}".contains(it);
    line.match_indices(folder).any(|(start, _)| !line.split_at(start).0.ends_with(is_inside))
}

fn is_followed_by_number(line: &str, word: &str) -> bool {
    line.split(word).skip(1).any(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_line(line: &str, is_found: bool) {
        assert_eq!(!check("docs/a.md", line).is_empty(), is_found, "{line}");
    }

    #[test]
    fn folders_of_a_machine_are_found() {
        check_line(concat!("see /wo", "rk/main"), true);
        check_line(concat!("`/ro", "ot/.cargo`"), true);
        check_line(concat!("docs/wo", "rk/a.md"), false);
    }

    #[test]
    fn registries_are_found() {
        for host in HOSTS {
            check_line(&format!("https://{host}/x"), true);
        }
        check_line("crates.io has it", false);
    }

    #[test]
    fn words_of_others_are_found() {
        for word in WORDS {
            check_line(&format!("a {word} b"), true);
            check_line(&format!("A {} b", word.to_uppercase()), true);
        }
        check_line(concat!("fixed in iss", "ue 12"), true);
        check_line(concat!("ses", "sion 3 did it"), true);
        check_line("a session ends, an agent calls, an issue is open", false);
    }

    #[test]
    fn what_is_not_ours_may_say_what_it_likes() {
        let line = concat!("/wo", "rk/");
        assert_eq!(check("Cargo.lock", line), []);
        assert_eq!(check("crates/wire/fixtures/chat/reply.json", line), []);
    }
}

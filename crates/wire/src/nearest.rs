//! Spelling suggestions: the nearest of some known words to a mistyped one, if one is near enough.

/// Bytes of the longest word that is compared: the distance costs the product of both lengths.
const WORD_MAX: usize = 128;
/// Bytes of the shortest word, or part of one, that is searched for in another.
const PIECE_MIN: usize = 3;

/// Known word with the fewest slips (letters left out, added, changed or swapped) from `written`. A third of
/// its letters may be wrong, and of short words a single one. If none is that near, a known word that is part
/// of `written`, or has it as a part.
#[must_use]
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > WORD_MAX {
        return None;
    }
    let known: Vec<_> = known.into_iter().collect();
    let slips = |known: &str| slips(&letters(written), &letters(known));
    let all = known.iter().map(|known| (*known, slips(known)));
    // Of several that are as near, the first one is meant.
    let (nearest, slips) = all.min_by_key(|(_, slips)| *slips)?;
    let most = (nearest.chars().count() / 3).max(1);
    // As many slips as letters would make every short word a match for every other.
    if slips <= most && slips < written.chars().count() {
        return Some(nearest);
    }
    let is_part = |of: &str, part: &str| part.len() >= PIECE_MIN && of.contains(part);
    known.into_iter().find(|known| is_part(written, known) || is_part(known, written))
}

fn letters(word: &str) -> Vec<char> {
    word.chars().map(|c| c.to_ascii_lowercase()).collect()
}

/// Distance of optimal string alignment, row by row. Words here are keys and names: a few dozen
/// letters.
fn slips(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i.saturating_add(1)];
        for (j, b) in other.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let changed = at(&last, j).saturating_add(usize::from(a != b));
            let added = at(&row, j).saturating_add(1);
            let left_out = at(&last, j.saturating_add(1)).saturating_add(1);
            let mut fewest = changed.min(added).min(left_out);
            let is_swapped = i.checked_sub(1).and_then(|i| one.get(i)) == Some(b)
                && j.checked_sub(1).and_then(|j| other.get(j)) == Some(a);
            // A swap looks two rows back: both letters are consumed at once.
            if is_swapped {
                fewest = fewest.min(at(&before, j.saturating_sub(1)).saturating_add(1));
            }
            row.push(fewest);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (one, other, slips_between) in [
            ("", "", 0),
            ("", "abc", 3),
            ("drain", "drain", 0),
            ("drian", "drain", 1),
            ("connections", "conections", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("listen", "Listen", 0),
        ] {
            assert_eq!(slips(&letters(one), &letters(other)), slips_between, "{one} {other}");
            assert_eq!(slips(&letters(other), &letters(one)), slips_between, "{other} {one}");
        }
    }

    #[test]
    fn only_what_is_near_is_meant() {
        let known = ["listen", "node", "secrets", "drain"];
        assert_eq!(nearest("lisen", known), Some("listen"));
        assert_eq!(nearest("secret", known), Some("secrets"));
        assert_eq!(nearest("Drain", known), Some("drain"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("drain_time", known), Some("drain"));
        assert_eq!(nearest("sec", known), Some("secrets"));
        assert_eq!(nearest("de", known), None);
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest("x", []), None);
    }
}

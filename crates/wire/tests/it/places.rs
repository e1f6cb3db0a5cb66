//! Places in a tree of JSON that is to be changed, and the smallest changes there are.

use crate::spelling::{Json, Whim};

/// Which places are wanted: by their JSON, the name of the member that they are in, and whether they
/// are passed through.
pub(crate) type Expectation = fn(&Json, &str, bool) -> bool;

/// Some place that is wanted, and whether it is passed through; `None` where there is none.
pub(crate) fn some<'a>(
    tree: &'a mut Json,
    wanted: Expectation,
    whim: &mut Whim,
) -> Option<(&'a mut Json, bool)> {
    let n = count(tree, "", false, wanted);
    let mut skipped = whim.of(n.max(1));
    find(tree, "", false, wanted, &mut skipped)
}

fn count(json: &Json, name: &str, is_fixed: bool, wanted: Expectation) -> usize {
    let inside: usize = match json {
        Json::Array(elements) => {
            elements.iter().map(|element| count(element, name, is_fixed, wanted)).sum()
        }
        Json::Object(members) => {
            members.iter().map(|(name, value)| count(value, name, is_fixed, wanted)).sum()
        }
        Json::Fixed(inner) => count(inner, name, true, wanted),
        Json::Word(_) | Json::Number(_) | Json::Text(_) => 0,
    };
    inside + usize::from(wanted(json, name, is_fixed))
}

fn find<'a>(
    json: &'a mut Json,
    name: &str,
    is_fixed: bool,
    wanted: Expectation,
    skipped: &mut usize,
) -> Option<(&'a mut Json, bool)> {
    if wanted(json, name, is_fixed) {
        if *skipped == 0 {
            return Some((json, is_fixed));
        }
        *skipped -= 1;
    }
    match json {
        Json::Array(elements) => {
            elements.iter_mut().find_map(|element| find(element, name, is_fixed, wanted, skipped))
        }
        Json::Object(members) => members
            .iter_mut()
            .find_map(|(name, value)| find(value, name, is_fixed, wanted, skipped)),
        Json::Fixed(inner) => find(inner, name, true, wanted, skipped),
        Json::Word(_) | Json::Number(_) | Json::Text(_) => None,
    }
}

/// What has no parts.
pub(crate) fn is_leaf(json: &Json, _name: &str, _is_fixed: bool) -> bool {
    matches!(json, Json::Word(_) | Json::Number(_) | Json::Text(_))
}

/// What has an order that means something: arrays but a set, and objects that are passed through.
pub(crate) fn is_list(json: &Json, name: &str, is_fixed: bool) -> bool {
    match json {
        Json::Array(elements) => elements.len() > 1 && name != "modalities",
        Json::Object(members) => members.len() > 1 && is_fixed,
        Json::Word(_) | Json::Number(_) | Json::Text(_) | Json::Fixed(_) => false,
    }
}

/// Objects whose members' names the caller has made up.
pub(crate) fn is_named_by_callers(json: &Json, name: &str, is_fixed: bool) -> bool {
    let is_free = is_fixed || ["metadata", "logit_bias"].contains(&name);
    is_free && matches!(json, Json::Object(members) if !members.is_empty())
}

/// Two of its parts change places.
pub(crate) fn reorder(list: &mut Json, whim: &mut Whim) {
    let mut pair = |n: usize| {
        let first = whim.of(n);
        (first, (first + 1 + whim.of(n - 1)) % n)
    };
    match list {
        Json::Array(elements) => {
            let (one, other) = pair(elements.len());
            elements.swap(one, other);
        }
        Json::Object(members) => {
            let (one, other) = pair(members.len());
            members.swap(one, other);
        }
        Json::Word(_) | Json::Number(_) | Json::Text(_) | Json::Fixed(_) => {}
    }
}

/// Another value of the same sort; where it is passed through, another spelling of the number is one.
pub(crate) fn change(leaf: &mut Json, is_fixed: bool, whim: &mut Whim, gained: char) {
    match leaf {
        Json::Word("true") => *leaf = Json::Word("false"),
        Json::Word("false") => *leaf = Json::Word("null"),
        Json::Word(_) => *leaf = Json::Word("true"),
        Json::Number(number) if is_fixed && !number.contains(['.', 'e', 'E']) => {
            number.push_str(if whim.now() { ".0" } else { "e0" });
        }
        Json::Number(number) => *number = if number == "1" { "2" } else { "1" }.to_owned(),
        Json::Text(text) => change_text(text, whim, gained),
        Json::Array(_) | Json::Object(_) | Json::Fixed(_) => {}
    }
}

/// The name of some member becomes another one.
pub(crate) fn rename(object: &mut Json, whim: &mut Whim, gained: char) {
    if let Json::Object(members) = object {
        let at = whim.of(members.len());
        change_text(&mut members[at].0, whim, gained);
    }
}

/// One character more, one less, or another one.
fn change_text(text: &mut String, whim: &mut Whim, gained: char) {
    let mut all: Vec<char> = text.chars().collect();
    let at = whim.of(all.len() + 1);
    match whim.of(3) {
        0 if at < all.len() => drop(all.remove(at)),
        1 if at < all.len() => all[at] = gained,
        _ => all.insert(at, gained),
    }
    *text = all.into_iter().collect();
}

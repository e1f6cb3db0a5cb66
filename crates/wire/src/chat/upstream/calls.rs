//! The tool calls of one choice: whole ones, and [`Calls`] while they come in pieces.
//!
//! Providers number the pieces, give them ids, or do neither, and some tell a call's id and name with every
//! piece of it. Callers get a number and an id of ours, so nothing here passes on what a provider calls a call.
//!
//! [`Calls::find`] has the rules by which a piece finds its call. A piece that fits no rule is an
//! [`UnreadableReason`] and no guess: arguments of one call must never end up in another.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use holdfast_domain::answer::ToolCallDelta;
use holdfast_domain::ports::UnreadableReason;
use holdfast_domain::request::ToolKind;

use crate::json::Node;

/// Tool calls of one choice, at most: more are no answer. What a delta costs would else grow with
/// them.
pub const CALLS_MAX: usize = 1_024;

/// Fields that an operator is told of where they cannot be read, of a whole call and of a piece.
const CALLS: &str = "choices[].message.tool_calls";
const PIECES: &str = "choices[].delta.tool_calls";
const PIECE_INDEX: &str = "choices[].delta.tool_calls[].index";
const PIECE_NAME: &str = "choices[].delta.tool_calls[].function.name";

/// Calls in the order in which they began: what they are numbered by here.
#[derive(Default)]
pub(super) struct Calls {
    all: Vec<PartialCall>,
    /// The newest call of each number of the provider's.
    by_number: HashMap<u32, usize>,
    /// The newest call of each id of the provider's.
    by_id: HashMap<IdHash, usize>,
    /// Calls whose name has not arrived yet: an answer that ends with one is broken.
    n_nameless: usize,
    ids: RandomState,
}

/// Hash of a provider's call id, 64 bits whatever the id's length: an id may be as long as the
/// event that it came in. The hash is keyed at random, so that no provider makes two ids meet.
type IdHash = u64;

/// A call as far as its pieces have told it; its input is passed on and not kept.
struct PartialCall {
    /// Hash of the provider's id, from the first piece that has one. Callers get an id of ours.
    id: Option<IdHash>,
    name: String,
    kind: ToolKind,
}

/// Marks of a piece by which [`Calls::find`] tells its call; any of them may be missing.
struct Label<'n> {
    number: Option<u32>,
    id: Option<IdHash>,
    name: &'n str,
}

impl Calls {
    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// True while some call has no name: the caller could not run it.
    pub(super) const fn has_nameless(&self) -> bool {
        self.n_nameless > 0
    }

    /// Gains of all calls by one delta, each call at most once, ordered by our index.
    pub(super) fn read_deltas(
        &mut self,
        delta: &Node<'_>,
    ) -> Result<Vec<ToolCallDelta>, UnreadableReason> {
        let Some(pieces) = delta.get("tool_calls") else { return Ok(Vec::new()) };
        // A chunk may have several pieces of one call. They are joined, so that callers get each call once a delta.
        let mut gained = BTreeMap::new();
        let pieces = pieces.as_array().ok_or(UnreadableReason::ToolCalls(PIECES))?;
        if pieces.len() > CALLS_MAX {
            return Err(UnreadableReason::TooManyCalls);
        }
        for piece in pieces {
            let Some(more) = self.piece(piece)? else { continue };
            match gained.entry(more.index) {
                Entry::Vacant(place) => {
                    place.insert(more);
                }
                Entry::Occupied(mut known) => {
                    append(&mut known.get_mut().name, more.name);
                    append(&mut known.get_mut().input, more.input);
                }
            }
        }
        Ok(gained.into_values().collect())
    }

    fn piece(&mut self, piece: &Node<'_>) -> Result<Option<ToolCallDelta>, UnreadableReason> {
        let text = |name| piece.get(name).and_then(Node::as_str).unwrap_or_default();
        // A number that cannot be read is not a missing one: a guess would put arguments into another call.
        let number = match piece.get("index") {
            None => None,
            Some(number) => {
                let number = number.as_number().and_then(|number| number.parse().ok());
                Some(number.ok_or(UnreadableReason::ToolCalls(PIECE_INDEX))?)
            }
        };
        // Some servers leave the type out: a member `custom` tells the kind then, else the call is a function's.
        let kind = match text("type") {
            "" if piece.get("custom").is_some() => Some(ToolKind::Custom),
            "" => None,
            "function" => Some(ToolKind::Function),
            "custom" => Some(ToolKind::Custom),
            _ => return Err(UnreadableReason::ToolCalls("choices[].delta.tool_calls[].type")),
        };
        let called = kind.map(ToolKind::label).or(Some("function"));
        let called = called.and_then(|member| piece.get(member));
        let name = called.and_then(|called| called.get("name")?.as_str()).unwrap_or_default();
        let id = Some(text("id")).filter(|id| !id.is_empty()).map(|id| self.ids.hash_one(id));
        let (at, is_new) = self.find(&Label { number, id, name }, kind)?;
        let call = self.all.get_mut(at).ok_or(UnreadableReason::ToolCalls(PIECE_INDEX))?;
        // The first id stays, and an id that two calls share leads to the newer of them.
        if let (None, Some(id)) = (call.id, id) {
            call.id = Some(id);
            let newest = self.by_id.entry(id).or_insert(at);
            *newest = at.max(*newest);
        }
        // The whole name once more is a repetition; anything else continues the name, as texts do.
        let name = Some(name).filter(|name| !name.is_empty() && *name != call.name);
        if name.is_some() && call.name.is_empty() {
            self.n_nameless = self.n_nameless.saturating_sub(1);
        }
        call.name.push_str(name.unwrap_or_default());
        let input = called.and_then(|called| called.get(input_name(call.kind)));
        let field = match call.kind {
            ToolKind::Function => "choices[].delta.tool_calls[].function.arguments",
            ToolKind::Custom => "choices[].delta.tool_calls[].custom.input",
        };
        let input = Some(input_text(input, field)?).filter(|input| !input.is_empty());
        // A repeated id or name alone is no delta: the caller would append it a second time.
        let is_news = is_new || name.is_some() || input.is_some();
        let index = u32::try_from(at).map_err(|_too_many| UnreadableReason::ToolCalls(PIECES))?;
        Ok(is_news.then(|| ToolCallDelta {
            index,
            kind: is_new.then_some(call.kind),
            name: name.map(str::to_owned),
            input,
            state: None,
        }))
    }

    /// Index of the call that a piece belongs to, and whether the piece begins it. In this order:
    ///
    /// 1. by its number, unless the piece has a name and another id than the call: then it is
    ///    another call under a number used twice. Another id alone proves nothing, because some
    ///    servers make a new id for every piece;
    /// 2. without a number, by its id;
    /// 3. with neither, a piece with a name begins a call, and one without continues the last.
    fn find(
        &mut self,
        label: &Label<'_>,
        kind: Option<ToolKind>,
    ) -> Result<(usize, bool), UnreadableReason> {
        let Label { number, id, name } = *label;
        let is_other = |call: &PartialCall| {
            !name.is_empty() && id.is_some() && call.id.is_some() && call.id != id
        };
        let found = match (number, id) {
            (Some(number), _) => self.by_number.get(&number).copied(),
            (None, Some(id)) => self.by_id.get(&id).copied(),
            (None, None) if name.is_empty() => {
                Some(self.all.len().checked_sub(1).ok_or(UnreadableReason::ToolCalls(PIECE_NAME))?)
            }
            (None, None) => None,
        };
        let found = found.filter(|at| !self.all.get(*at).is_some_and(is_other));
        if let Some(at) = found {
            return Ok((at, false));
        }
        let at = self.all.len();
        // Before the call is kept: a provider decides how many there are, not how many are held in memory.
        if at == CALLS_MAX {
            return Err(UnreadableReason::TooManyCalls);
        }
        if let Some(number) = number {
            // Replaces an older call of this number: later pieces under the number belong to the newer one.
            self.by_number.insert(number, at);
        }
        let kind = kind.unwrap_or(ToolKind::Function);
        self.all.push(PartialCall { id: None, name: String::new(), kind });
        self.n_nameless = self.n_nameless.saturating_add(1);
        Ok((at, true))
    }
}

/// Calls of a whole message, each of them whole.
pub(super) fn read(message: &Node<'_>) -> Result<Vec<ToolCallDelta>, UnreadableReason> {
    let Some(calls) = message.get("tool_calls") else { return Ok(Vec::new()) };
    let calls = calls.as_array().ok_or(UnreadableReason::ToolCalls(CALLS))?;
    if calls.len() > CALLS_MAX {
        return Err(UnreadableReason::TooManyCalls);
    }
    (0..).zip(calls).map(|(index, call)| tool_call(index, call)).collect()
}

/// The `type` may be missing; what is called may not.
fn tool_call(index: u32, call: &Node<'_>) -> Result<ToolCallDelta, UnreadableReason> {
    let kind = match call.get("type").and_then(Node::as_str) {
        Some("function") => ToolKind::Function,
        Some("custom") => ToolKind::Custom,
        None if call.get("function").is_some() => ToolKind::Function,
        Some(_) | None => {
            return Err(UnreadableReason::ToolCalls("choices[].message.tool_calls[].type"));
        }
    };
    let called = call.get(kind.label()).ok_or(UnreadableReason::ToolCalls(CALLS))?;
    let [name_field, input_field] = match kind {
        ToolKind::Function => [
            "choices[].message.tool_calls[].function.name",
            "choices[].message.tool_calls[].function.arguments",
        ],
        ToolKind::Custom => [
            "choices[].message.tool_calls[].custom.name",
            "choices[].message.tool_calls[].custom.input",
        ],
    };
    let name = name(called, name_field)?;
    let input = input_text(called.get(input_name(kind)), input_field)?;
    Ok(ToolCallDelta { index, kind: Some(kind), name: Some(name), input: Some(input), state: None })
}

pub(super) fn name(called: &Node<'_>, field: &'static str) -> Result<String, UnreadableReason> {
    let name = called.get("name").and_then(Node::as_str).map(str::to_owned);
    name.ok_or(UnreadableReason::ToolCalls(field))
}

/// Some servers send the arguments as the object that the text would be, or none at all.
pub(super) fn input_text(
    input: Option<&Node<'_>>,
    field: &'static str,
) -> Result<String, UnreadableReason> {
    match input {
        None => Ok(String::new()),
        Some(Node::String(text)) => Ok(text.as_ref().to_owned()),
        Some(object @ Node::Object(_)) => Ok(object.to_string()),
        Some(Node::Null | Node::Bool(_) | Node::Number(_) | Node::Array(_)) => {
            Err(UnreadableReason::ToolCalls(field))
        }
    }
}

const fn input_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Function => "arguments",
        ToolKind::Custom => "input",
    }
}

fn append(to: &mut Option<String>, more: Option<String>) {
    match (to.as_mut(), more) {
        (Some(text), Some(more)) => text.push_str(&more),
        (None, more) => *to = more,
        (Some(_), None) => {}
    }
}

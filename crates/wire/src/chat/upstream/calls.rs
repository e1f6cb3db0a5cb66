//! The tool calls of one choice, whole ones and those that come in pieces.
//!
//! Providers number the pieces, give them ids, or do neither, and some send a call's id and name with every
//! piece of it. Callers get a number and an id of the gateway's, so no provider's id is passed on here.
//!
//! [`PartialCall::fit`] compares a piece with a call, and [`Calls::find`] chooses among the calls that
//! the piece fits. A piece that fits none or two is an [`UnreadableReason`] and no guess: arguments of
//! one call must never end up in another.
//!
//! ```text
//! arguments of a function      sent to the caller
//! {} at first                  no bytes yet: all of them, or a placeholder
//! {} and then {"city":"Oslo"}  {"city":"Oslo"}
//! {} or none until the end     {}, with the end of the choice; no bytes in the last call of a cut answer
//! ```

use std::hash::{BuildHasher, RandomState};

use holdfast_domain::answer::{FinishReason, ToolCallDelta};
use holdfast_domain::ports::UnreadableReason;
use holdfast_domain::request::ToolKind;

use super::arguments::JsonProgress;
use super::call_part::{CallFields, CallPart};
use super::context::ToolNames;
use super::members::list;
use crate::json::Node;

/// Tool calls of one choice, at most: more are no answer. What a delta costs would else grow with
/// them.
pub const CALLS_MAX: usize = 1_024;

/// Calls in the order in which they began: their numbers for callers.
#[derive(Default)]
pub(super) struct Calls {
    all: Vec<PartialCall>,
    /// Calls whose name has not arrived yet: an answer that ends with one is broken.
    n_nameless: usize,
    /// End of the choice: no arguments are held back any more.
    finish: Option<FinishReason>,
    ids: RandomState,
}

/// Hash of a provider's call id, 64 bits for ids of any length: an id may be as long as the event that it came
/// in. The hash is keyed at random, so that no provider makes two ids meet.
type IdHash = u64;

/// A call as far as its pieces have come; its input is passed on and not kept.
struct PartialCall {
    /// The provider's number, from the first piece that has one.
    number: Option<u32>,
    /// Hash of the provider's id, from the first piece that has one.
    id: Option<IdHash>,
    name: String,
    kind: ToolKind,
    input: Arguments,
    /// The name came once more after whole arguments: a repetition, or the start of another call of
    /// the same tool. The next arguments decide.
    is_named_again: bool,
}

/// Progress of a function's arguments. A custom tool's input is any text, and has none.
#[derive(Default)]
pub(super) struct Arguments {
    progress: JsonProgress,
    /// Object without members that has come first, as it was spelled.
    placeholder: String,
}

impl Arguments {
    /// Takes a piece, and returns what of it goes to the caller now.
    pub(super) fn take(&mut self, piece: String) -> Option<String> {
        if self.progress.is_blank() && is_nothing_yet(&piece) {
            if piece.contains('{') {
                self.placeholder = piece;
            }
            return None;
        }
        self.progress.feed(&piece);
        Some(piece).filter(|piece| !piece.is_empty())
    }

    /// Returns what goes to the caller with the end of the choice: callers parse what they get. A call
    /// that a bound cut before its arguments must not look whole, and gets none.
    pub(super) fn close(&mut self, is_cut: bool) -> Option<String> {
        const NO_ARGUMENTS: &str = "{}";
        let is_missing = self.progress.is_blank() && !is_cut;
        is_missing.then(|| {
            self.progress.feed(NO_ARGUMENTS);
            let spelled = std::mem::take(&mut self.placeholder);
            if spelled.is_empty() { NO_ARGUMENTS.to_owned() } else { spelled }
        })
    }

    pub(super) const fn is_whole(&self) -> bool {
        self.progress.is_whole()
    }
}

/// True for white space and for an object without members: a placeholder, if more arguments follow.
fn is_nothing_yet(piece: &str) -> bool {
    let inner = piece.trim_ascii();
    let inner = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(inner);
    inner.trim_ascii().is_empty()
}

/// Marks of a piece, for the comparison with a call.
struct Label<'n> {
    part: &'n CallPart<'n>,
    id: Option<IdHash>,
    has_input: bool,
}

/// Strongest mark that a piece and a call share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Unmarked,
    Number,
    Id,
}

/// Call of a piece.
enum Target {
    Known(usize),
    /// A call that the piece begins.
    New,
    /// Another call of the tool of this one.
    Again(usize),
    /// The name of this call once more, or of another one that it does not distinguish.
    Name(usize),
    /// The piece names no call.
    Nothing,
}

impl PartialCall {
    /// Compares a piece with the call; `None` if a mark contradicts that the piece continues it.
    fn fit(&self, label: &Label<'_>, tools: &ToolNames) -> Option<Fit> {
        let CallPart { number, kind, name, .. } = *label.part;
        let contradicts = |own: Option<u64>, other: Option<u64>| {
            own.zip(other).is_some_and(|(own, other)| own != other)
        };
        let is_other = contradicts(self.id, label.id)
            || contradicts(self.number.map(u64::from), number.map(u64::from))
            || kind.is_some_and(|kind| kind != self.kind);
        // Whole arguments have no more pieces.
        if is_other || label.has_input && self.input.progress.is_whole_object() {
            return None;
        }
        let fit = match () {
            () if self.id.is_some() && self.id == label.id => Fit::Id,
            () if self.number.is_some() && self.number == number => Fit::Number,
            () => Fit::Unmarked,
        };
        (!self.is_named_otherwise(name, fit, tools)).then_some(fit)
    }

    /// True if a piece with this name is of another call: the call has its whole name already.
    fn is_named_otherwise(&self, name: &str, fit: Fit, tools: &ToolNames) -> bool {
        if name.is_empty() || self.name.is_empty() || self.name == name {
            return false;
        }
        // A name in pieces comes under one mark and before the arguments.
        if fit == Fit::Unmarked || !self.input.progress.is_blank() {
            return true;
        }
        // `get` may be a tool, and the start of `get_weather`.
        tools.has(&self.name) && (tools.has(name) || !tools.begins_with(&self.name, name))
    }
}

impl Calls {
    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    /// Gains of all calls by one delta or message, each call at most once, ordered by our index.
    pub(super) fn read(
        &mut self,
        said: &Node<'_>,
        tools: &ToolNames,
        fields: &CallFields,
    ) -> Result<Vec<ToolCallDelta>, UnreadableReason> {
        let parts = said.get("tool_calls");
        // Some servers send the only call without its list.
        let parts = list(parts).ok_or(UnreadableReason::ToolCalls(fields.list))?;
        if parts.len() > CALLS_MAX {
            return Err(UnreadableReason::TooManyCalls);
        }
        let mut gained = Vec::new();
        for part in parts {
            let Some(part) = CallPart::read(part, fields)? else { continue };
            if let Some(more) = self.part(part, tools, fields)? {
                add(&mut gained, more);
            }
        }
        if let Some(finish) = self.finish {
            self.close(finish, &mut gained);
        }
        gained.sort_by_key(|call| call.index);
        Ok(gained)
    }

    /// The choice has ended: calls whose arguments have not come have none.
    pub(super) fn end(&mut self, finish: FinishReason, gained: &mut Vec<ToolCallDelta>) {
        self.finish = Some(finish);
        self.close(finish, gained);
        gained.sort_by_key(|call| call.index);
    }

    /// True while some call has no name: the caller could not run it.
    pub(super) const fn has_nameless(&self) -> bool {
        self.n_nameless > 0
    }

    /// True if every call has whole arguments. A bound or a filter of the provider may have cut the
    /// last one.
    pub(super) fn are_whole(&self, is_cut: bool) -> bool {
        let judged = self.all.len().saturating_sub(usize::from(is_cut));
        let mut judged = self.all.iter().take(judged);
        judged.all(|call| call.kind == ToolKind::Custom || call.input.is_whole())
    }

    fn part(
        &mut self,
        part: CallPart<'_>,
        tools: &ToolNames,
        fields: &CallFields,
    ) -> Result<Option<ToolCallDelta>, UnreadableReason> {
        // A whole call has no further pieces that its marks could tell from others'.
        let id = part.id.filter(|_| !fields.is_whole).map(|id| self.ids.hash_one(id));
        let label = Label { part: &part, id, has_input: part.has_input() };
        let target = if fields.is_whole { Target::New } else { self.find(&label, tools, fields)? };
        let mut name = part.name.to_owned();
        let (at, is_new) = match target {
            Target::Known(at) => (at, false),
            Target::New => (self.begin(part.kind)?, true),
            Target::Again(other) => {
                let kind = self.all.get_mut(other).map(|call| {
                    call.is_named_again = false;
                    name.clone_from(&call.name);
                    call.kind
                });
                (self.begin(kind)?, true)
            }
            Target::Name(at) => {
                if let Some(call) = self.all.get_mut(at) {
                    call.is_named_again |= call.input.progress.is_whole_object();
                }
                return Ok(None);
            }
            Target::Nothing => return Ok(None),
        };
        let call = self.all.get_mut(at).ok_or(UnreadableReason::ToolCalls(fields.index))?;
        call.number = call.number.or(part.number);
        let is_repeated = !name.is_empty() && call.name == name;
        let is_by_id = id.is_some() && call.id == id;
        call.is_named_again |= is_repeated && !is_by_id && call.input.progress.is_whole_object();
        call.id = call.id.or(id);
        // The whole name once more is a repetition; anything else continues the name, as texts do.
        let name = Some(name).filter(|name| !name.is_empty() && !is_repeated);
        if let Some(name) = &name {
            self.n_nameless = self.n_nameless.saturating_sub(usize::from(call.name.is_empty()));
            if !fields.is_whole {
                call.name.push_str(name);
            }
        }
        let input = match call.kind {
            ToolKind::Function => call.input.take(part.input),
            ToolKind::Custom => Some(part.input).filter(|input| is_new || !input.is_empty()),
        };
        // A repeated id or name alone is no delta: the caller would append it a second time.
        let is_news = is_new || name.is_some() || input.is_some();
        let index = u32::try_from(at).map_err(|_many| UnreadableReason::TooManyCalls)?;
        let kind = is_new.then_some(call.kind);
        Ok(is_news.then_some(ToolCallDelta { index, kind, name, input, state: None }))
    }

    /// Call of a piece: of those without a contradiction the one with the strongest mark. If there is none, the
    /// piece begins a call, as long as its name is there or may follow.
    fn find(
        &self,
        label: &Label<'_>,
        tools: &ToolNames,
        fields: &CallFields,
    ) -> Result<Target, UnreadableReason> {
        let mut best = None;
        let mut is_only = false;
        for (at, call) in self.all.iter().enumerate() {
            let Some(fit) = call.fit(label, tools) else { continue };
            match best {
                Some((known, _)) if known > fit => {}
                Some((known, _)) => {
                    is_only = known < fit;
                    best = Some((fit, at));
                }
                None => {
                    is_only = true;
                    best = Some((fit, at));
                }
            }
        }
        let CallPart { number, name, .. } = *label.part;
        if let Some((_, at)) = best {
            let is_repeated = || self.all.get(at).is_some_and(|call| call.name == name);
            return match () {
                () if is_only => Ok(Target::Known(at)),
                // Without news it does not matter which of them a piece repeats: none gets its marks.
                () if !label.has_input && name.is_empty() => Ok(Target::Nothing),
                () if !label.has_input && is_repeated() => Ok(Target::Name(at)),
                () => Err(UnreadableReason::ToolCalls(fields.function_name)),
            };
        }
        if !name.is_empty() {
            return Ok(Target::New);
        }
        let shares_mark = |call: &PartialCall| match number {
            Some(_) => call.number == number,
            None => label.id.is_none() || call.id == label.id,
        };
        let again = |call: &PartialCall| call.is_named_again && shares_mark(call);
        if let Some(at) = self.all.iter().rposition(again) {
            return Ok(Target::Again(at));
        }
        // Arguments may come before the name, under a mark that no other call has.
        let is_marked = number.is_some() || label.id.is_some();
        if is_marked && !self.all.iter().any(shares_mark) {
            return Ok(Target::New);
        }
        let says_nothing = !label.has_input && !self.all.is_empty();
        says_nothing
            .then_some(Target::Nothing)
            .ok_or(UnreadableReason::ToolCalls(fields.function_name))
    }

    /// Begins a call, and returns its place.
    fn begin(&mut self, kind: Option<ToolKind>) -> Result<usize, UnreadableReason> {
        let at = self.all.len();
        // Before the call is kept: a provider decides how many there are, not how many are held in memory.
        if at == CALLS_MAX {
            return Err(UnreadableReason::TooManyCalls);
        }
        self.all.push(PartialCall {
            number: None,
            id: None,
            name: String::new(),
            kind: kind.unwrap_or(ToolKind::Function),
            input: Arguments::default(),
            is_named_again: false,
        });
        self.n_nameless = self.n_nameless.saturating_add(1);
        Ok(at)
    }

    fn close(&mut self, finish: FinishReason, gained: &mut Vec<ToolCallDelta>) {
        let n = self.all.len();
        for (index, (place, call)) in (0..).zip((1..).zip(&mut self.all)) {
            if call.kind == ToolKind::Function
                && let Some(input) = call.input.close(finish.is_cut() && place == n)
            {
                let input = Some(input);
                add(gained, ToolCallDelta { index, input, ..ToolCallDelta::default() });
            }
        }
    }
}

/// Adds the gain of a call to those of its delta: a chunk may have several pieces of one call, and
/// callers get each call once a delta.
fn add(gained: &mut Vec<ToolCallDelta>, more: ToolCallDelta) {
    match gained.iter_mut().rev().find(|known| known.index == more.index) {
        None => gained.push(more),
        Some(known) => {
            append(&mut known.name, more.name);
            append(&mut known.input, more.input);
        }
    }
}

fn append(to: &mut Option<String>, more: Option<String>) {
    match (to.as_mut(), more) {
        (Some(text), Some(more)) => text.push_str(&more),
        (None, more) => *to = more,
        (Some(_), None) => {}
    }
}

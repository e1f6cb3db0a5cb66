//! Thoughts of a model before its calls of tools, kept for models that require them back with the results.
//!
//! ```text
//! state of a call = thoughts before the text, a line each
//!                   (an empty line)
//!                   thoughts before the call, a line each
//! ```
//!
//! Each call has what came since the call before it, in the words and under the signature that it
//! came with: a signature proves the words, so a changed or shortened thought is refused by the
//! provider.
//!
//! Never: half of the thoughts. Once those of one answer are above `ProviderState::LEN_MAX` bytes,
//! with `THOUGHT_BYTES` for each, no further call of it keeps any. Callers get none of it from here.
//! The spelling of a thought is the kind's.

use std::collections::BTreeMap;

use holdfast_domain::state::ProviderState;
use holdfast_wire::json::Draft;

/// Thought of a model.
pub(crate) enum ReasoningBlock {
    /// In words, with what proves whose they are.
    Said { text: String, signature: Option<String> },
    /// For the provider alone.
    Redacted(String),
}

/// Charge for a thought besides its words, in bytes: many without any are many all the same.
const THOUGHT_BYTES: usize = 64;

/// Thoughts that no call has come after yet.
#[derive(Default)]
pub(crate) struct PendingReasoning {
    before_text: Vec<ReasoningBlock>,
    /// All of them while there is no text yet, so that the place of none is lost.
    before_call: Vec<ReasoningBlock>,
    /// Thoughts that still arrive, by the place of their block.
    open: BTreeMap<u64, (String, Option<String>)>,
    n_calls: u64,
    bytes: usize,
}

impl PendingReasoning {
    /// A text begins. A text between two calls is placed before both: callers have one text.
    pub(crate) fn text(&mut self) {
        if self.n_calls == 0 {
            self.before_text.append(&mut self.before_call);
        }
    }

    /// A whole thought.
    pub(crate) fn add(&mut self, thought: ReasoningBlock) {
        let bytes = match &thought {
            ReasoningBlock::Said { text, signature } => {
                text.len().saturating_add(signature.as_ref().map_or(0, String::len))
            }
            ReasoningBlock::Redacted(data) => data.len(),
        };
        if self.try_reserve(bytes.saturating_add(THOUGHT_BYTES)) {
            self.before_call.push(thought);
        }
    }

    /// A thought for the provider alone. Without its data none of them can go back, as after too
    /// many.
    pub(crate) fn redacted(&mut self, data: Option<&str>) {
        match data {
            Some(data) => self.add(ReasoningBlock::Redacted(data.to_owned())),
            None => self.bytes = usize::MAX,
        }
    }

    /// More of a thought that arrives in pieces.
    pub(crate) fn append(&mut self, place: u64, text: Option<&str>, signature: Option<&str>) {
        let bytes = [text, signature].into_iter().flatten().map(str::len).sum::<usize>();
        let begun = if self.open.contains_key(&place) { 0 } else { THOUGHT_BYTES };
        if self.try_reserve(bytes.saturating_add(begun)) {
            let (thought, signed) = self.open.entry(place).or_default();
            thought.push_str(text.unwrap_or_default());
            if let Some(signature) = signature {
                signed.get_or_insert_default().push_str(signature);
            }
        }
    }

    /// A thought that came in pieces is whole.
    pub(crate) fn end(&mut self, place: u64) {
        if let Some((text, signature)) = self.open.remove(&place) {
            self.before_call.push(ReasoningBlock::Said { text, signature });
        }
    }

    /// State for the call that comes now. More than can be kept is dropped whole: providers refuse half of it.
    pub(crate) fn before_call(
        &mut self,
        spell: fn(&ReasoningBlock) -> Draft<'_>,
    ) -> Option<ProviderState> {
        self.n_calls = self.n_calls.saturating_add(1);
        let lines = |thoughts: Vec<ReasoningBlock>| -> Vec<_> {
            thoughts.iter().map(|thought| spell(thought).to_string()).collect()
        };
        let before_text = lines(std::mem::take(&mut self.before_text));
        let before_call = lines(std::mem::take(&mut self.before_call));
        if before_text.is_empty() && before_call.is_empty() || self.bytes > ProviderState::LEN_MAX {
            return None;
        }
        ProviderState::new(&[before_text.join("\n"), before_call.join("\n")].join("\n\n"))
    }

    /// Takes room for so many more bytes; true if there is any. Once full, it stays full for the answer.
    fn try_reserve(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= ProviderState::LEN_MAX
    }
}

/// Puts back what a call came with: before the text of its turn what came before that, and the rest
/// before the call, which is next.
pub(crate) fn restore<'a>(blocks: &mut Vec<Draft<'a>>, state: &'a ProviderState) {
    let Some((before_text, before_call)) = state.as_str().split_once("\n\n") else { return };
    blocks.splice(..0, before_text.lines().map(Draft::Json));
    blocks.extend(before_call.lines().map(Draft::Json));
}

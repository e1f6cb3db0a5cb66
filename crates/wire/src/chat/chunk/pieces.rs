//! Splitting of a whole answer into pieces as small as those of a stream. A replayed answer, or one
//! that a provider sends at once, then costs its readers, and the buffers between, no more than a
//! live one.
//!
//! ```text
//! reasoning, content, refusal, older call, calls, audio     pieces of 4 KiB of text and 16 tokens
//! sources, end, expiry of audio                             one piece more, in split_delta alone
//! ```
//!
//! Pieces add up to what they were cut from: texts are cut between characters, and a token's likeliness
//! travels with its text. The sizes are limits of a piece, and no promise to readers.

use holdfast_domain::answer::{
    Audio, ChoiceDelta, Delta, FunctionCallDelta, Logprobs, ToolCallDelta,
};
use holdfast_domain::request::Opaque;

use crate::json::{self, Node};

/// The most text of a piece, in bytes.
const TEXT_MAX: usize = 4_096;
/// The most log-probabilities of a piece, in tokens.
const TOKENS_MAX: usize = 16;
/// Bytes that a call counts for beside its name and input: its id, its type and its braces.
const CALL_BYTES: usize = 64;

/// Pieces that add up to a delta: each with at most 4 KiB of text and 16 log-probabilities. The
/// sources of a choice and its end come last, in one piece.
#[must_use]
pub fn split_delta(delta: Delta) -> Vec<Delta> {
    let Delta { choices, service_tier, predicted, moderation } = delta;
    // These are of the whole answer: they go first, in a piece of their own.
    let beside = Delta { choices: Vec::new(), service_tier, predicted, moderation };
    let mut pieces: Vec<_> = (beside != Delta::default()).then_some(beside).into_iter().collect();
    for choice in choices {
        for_each_piece(&choice, &mut |piece| pieces.push(Delta::from(vec![piece])));
        let ChoiceDelta { index, annotations, finish, audio, .. } = choice;
        // Zero is a provider that did not tell it.
        let expires_at = audio.map_or(0, |audio| audio.expires_at);
        let audio = (expires_at != 0).then(|| Audio { expires_at, ..Audio::default() });
        let rest = ChoiceDelta { annotations, finish, audio, ..empty(index) };
        if rest != empty(index) {
            pieces.push(Delta::from(vec![rest]));
        }
    }
    pieces
}

/// Takes a choice apart, in the order in which a model streams its parts. Its sources, its end and the expiry
/// of its audio are in no piece.
pub(super) fn for_each_piece(choice: &ChoiceDelta, tell: &mut impl FnMut(ChoiceDelta)) {
    let mut pieces =
        PieceBuilder { piece: empty(choice.index), text_bytes: 0, tokens: 0, emit: tell };
    if let Some(reasoning) = &choice.reasoning {
        pieces.text(reasoning, |piece, more| add(&mut piece.reasoning, more));
    }
    let likely = choice.logprobs.as_ref();
    pieces.piece.logprobs = likely.map(|Logprobs { content, refusal }| {
        let empty = |list: &Vec<Opaque>| Vec::with_capacity(list.len().min(TOKENS_MAX));
        Logprobs { content: content.as_ref().map(empty), refusal: refusal.as_ref().map(empty) }
    });
    let (content, refusal) =
        likely.map_or((None, None), |likely| (likely.content.as_ref(), likely.refusal.as_ref()));
    pieces.tokens(
        (choice.content.as_deref(), |piece, more| add(&mut piece.content, more)),
        (content, |likely| &mut likely.content),
    );
    pieces.tokens(
        (choice.refusal.as_deref(), |piece, more| add(&mut piece.refusal, more)),
        (refusal, |likely| &mut likely.refusal),
    );
    if let Some(call) = &choice.function_call {
        pieces.function_call(call);
    }
    choice.tool_calls.iter().for_each(|call| pieces.tool_call(call));
    if let Some(audio) = &choice.audio {
        pieces.audio(audio);
    }
    (pieces.emit)(pieces.piece);
}

/// Accessor of one of the two lists of log-probabilities.
type LogprobList = fn(&mut Logprobs) -> &mut Option<Vec<Opaque>>;

/// The next piece of a choice while it fills; full at [`TEXT_MAX`] bytes or [`TOKENS_MAX`] tokens.
struct PieceBuilder<'t, T> {
    piece: ChoiceDelta,
    text_bytes: usize,
    tokens: usize,
    emit: &'t mut T,
}

impl<T: FnMut(ChoiceDelta)> PieceBuilder<'_, T> {
    fn flush(&mut self) {
        let next = empty(self.piece.index);
        (self.emit)(std::mem::replace(&mut self.piece, next));
        (self.text_bytes, self.tokens) = (0, 0);
    }

    const fn room(&self) -> usize {
        TEXT_MAX.saturating_sub(self.text_bytes)
    }

    /// Appends a text, in as many pieces as it takes, each cut between characters.
    fn text(&mut self, text: &str, add: impl Fn(&mut ChoiceDelta, &str)) {
        let mut rest = text;
        loop {
            // May take nothing where a character has no room; after the flush there is room for any character.
            let (more, left) = rest.split_at(rest.floor_char_boundary(self.room()));
            add(&mut self.piece, more);
            self.text_bytes = self.text_bytes.saturating_add(more.len());
            if left.is_empty() {
                return;
            }
            rest = left;
            self.flush();
        }
    }

    /// Appends a text and the log-probabilities of its tokens: each token in the piece that has its
    /// text, as long as the tokens spell the text.
    fn tokens(
        &mut self,
        (text, add): (Option<&str>, fn(&mut ChoiceDelta, &str)),
        (tokens, list): (Option<&Vec<Opaque>>, LogprobList),
    ) {
        let mut rest = text.unwrap_or_default();
        for token in tokens.into_iter().flatten() {
            // A token that does not spell what comes next, such as half of a character, takes no text along.
            // What no token took goes out at the end.
            let own = text_of(token).filter(|own| rest.starts_with(own.as_str()));
            let own = own.as_ref().map_or(0, String::len);
            // A token's text is cut only where it alone is larger than a piece.
            if self.tokens >= TOKENS_MAX || own > self.room() && self.text_bytes > 0 {
                self.flush();
            }
            let likely = self.piece.logprobs.get_or_insert_default();
            list(likely).get_or_insert_default().push(token.clone());
            self.tokens = self.tokens.saturating_add(1);
            let (own, left) = rest.split_at(own);
            if !own.is_empty() {
                self.text(own, add);
            }
            rest = left;
        }
        if text.is_some() {
            self.text(rest, add);
        }
    }

    fn function_call(&mut self, call: &FunctionCallDelta) {
        let FunctionCallDelta { name, arguments } = call;
        self.text_bytes = self.text_bytes.saturating_add(name.as_ref().map_or(0, String::len));
        let begun = FunctionCallDelta { name: name.clone(), arguments: None };
        self.piece.function_call = Some(begun);
        if let Some(arguments) = arguments {
            self.text(arguments, |piece, more| {
                add(&mut piece.function_call.get_or_insert_default().arguments, more);
            });
        }
    }

    fn tool_call(&mut self, call: &ToolCallDelta) {
        let ToolCallDelta { index, kind, name, input, state } = call;
        if self.room() == 0 {
            self.flush();
        }
        let bytes = CALL_BYTES.saturating_add(name.as_ref().map_or(0, String::len));
        self.text_bytes = self.text_bytes.saturating_add(bytes);
        let (index, kind, name, state) = (*index, *kind, name.clone(), state.clone());
        self.piece.tool_calls.push(ToolCallDelta { index, kind, name, input: None, state });
        if let Some(input) = input {
            self.text(input, |piece, more| {
                // After a flush the piece is new, and the call begins in it by its index alone.
                match piece.tool_calls.last_mut().filter(|call| call.index == index) {
                    Some(call) => add(&mut call.input, more),
                    None => piece.tool_calls.push(ToolCallDelta {
                        index,
                        input: Some(more.to_owned()),
                        ..ToolCallDelta::default()
                    }),
                }
            });
        }
    }

    fn audio(&mut self, audio: &Audio) {
        if audio.data.len() > self.room() && self.text_bytes > 0 {
            // Base64 is cut between its groups of four: an empty piece has room for whole groups.
            self.flush();
        }
        self.text(&audio.data, |piece, more| {
            piece.audio.get_or_insert_default().data.push_str(more);
        });
        self.text(&audio.transcript, |piece, more| {
            piece.audio.get_or_insert_default().transcript.push_str(more);
        });
    }
}

fn empty(index: u32) -> ChoiceDelta {
    ChoiceDelta { index, ..ChoiceDelta::default() }
}

fn add(text: &mut Option<String>, more: &str) {
    text.get_or_insert_default().push_str(more);
}

/// The text of a token, if it has one.
fn text_of(token: &Opaque) -> Option<String> {
    let token = json::parse_answer(token.as_str().as_bytes()).ok()?;
    token.get("token").and_then(Node::as_str).map(str::to_owned)
}

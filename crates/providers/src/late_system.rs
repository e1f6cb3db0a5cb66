//! Instructions after the first turn (`system` and `developer` messages), for kinds whose API has one place
//! for instructions, ahead of the conversation.
//!
//! To move a late instruction there would apply it to turns before it, and would change the start of the
//! prompt, which every provider's cache is keyed by. So it stays in its place, as marked text of the user.
//!
//! The mark is `<system-reminder>`, in which Anthropic's own agents put instructions into a user's turn:
//! - Anthropic takes `role: "system"` within a conversation only of some models, after a user's turn, and not
//!   on Bedrock or Vertex AI; for all other models it is an error
//!   (<https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages>).
//! - Google has `user` and `model` as the roles of `contents`, and documents no mark
//!   (<https://ai.google.dev/api/caching#Content>).
//! - AWS lists `system` among the roles of a Converse message, and models refuse it; it documents no mark
//!   (<https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html>).
//!
//! A user can write the mark as well: a folded instruction has a user's weight, not that of instructions
//! ahead of the conversation.

use holdfast_domain::request::{Content, Item, Message, Request, Role};

const BEGIN: &str = "<system-reminder>\n";
const END: &str = "\n</system-reminder>";

/// Treatment of `system` and `developer` messages after the first turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LateSystem {
    /// Marked text of the user, in its place.
    #[default]
    Fold,
    /// Refused by name.
    Refuse,
}

impl LateSystem {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Fold, Self::Refuse];

    /// The name in configuration.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fold => "fold",
            Self::Refuse => "refuse",
        }
    }

    /// Bytes that folding adds to a request's prompt: the marks of each text of a late instruction.
    pub(crate) fn added_bytes(self, request: &Request) -> u64 {
        if self == Self::Refuse {
            return 0;
        }
        let turns = request.messages.iter().skip_while(|message| is_instruction(message));
        let late = turns.filter(|message| is_instruction(message));
        let texts = late.map(|message| match &message.content {
            Some(Content::Parts(parts)) => {
                parts.iter().filter(|part| matches!(part.item, Item::Text(_))).count()
            }
            Some(Content::Text(_)) => 1,
            None => 0,
        });
        let marks = texts.sum::<usize>().saturating_mul(BEGIN.len() + END.len());
        u64::try_from(marks).unwrap_or(u64::MAX)
    }
}

/// True for a message that a kind with one place for instructions sends there, if no turn came before it.
pub(crate) const fn is_instruction(message: &Message) -> bool {
    match message.role {
        Role::Developer | Role::System => true,
        Role::User | Role::Assistant(_) | Role::Tool { .. } | Role::Function => false,
    }
}

/// A late instruction's text with its marks.
pub(crate) fn marked(text: &str) -> String {
    [BEGIN, text, END].concat()
}

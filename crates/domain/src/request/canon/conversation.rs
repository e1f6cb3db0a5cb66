//! Feed of the turns of a conversation. Not of what the model is offered beside them.

use super::{CanonicalSink, CanonicalWriter, tag};
use crate::request::{
    AssistantMessage, CacheBreakpoint, Content, ContentPart, Item, Message, Role, ToolCall,
};

impl<A: CanonicalSink> CanonicalWriter<A> {
    pub(super) fn message(&mut self, message: &Message) {
        let role = match &message.role {
            // Numbers of the stored fingerprints: never another one for a role.
            Role::Developer => 0,
            Role::System => 1,
            Role::User => 2,
            Role::Assistant(_) => 3,
            Role::Tool { .. } => 4,
            Role::Function => 5,
        };
        self.integer(tag::ROLE, role);
        self.optional_text(tag::NAME, message.name.as_deref());
        match &message.content {
            None => {}
            // Not as one part: providers may treat the two forms differently, so they are two requests.
            Some(Content::Text(text)) => self.text(tag::TEXT, text),
            Some(Content::Parts(parts)) => self.each(tag::PARTS, parts, Self::part),
        }
        match &message.role {
            Role::Assistant(reply) => self.reply(reply),
            Role::Tool { call_id } => self.text(tag::TOOL_CALL_ID, call_id),
            Role::Developer | Role::System | Role::User | Role::Function => {}
        }
        // Of an assistant's turn since version 1, of the others since version 2.
        self.extras(tag::EXTRAS, &message.extras);
        // Closes the message, whose fields may all be absent: the next one begins with the same
        // tags.
        self.mark(tag::END, &[]);
    }

    fn part(&mut self, part: &ContentPart) {
        match &part.item {
            Item::Text(text) => self.text(tag::TEXT, text),
            Item::Refusal(text) => self.text(tag::REFUSAL_PART, text),
            Item::Image { url, detail } => {
                self.text(tag::IMAGE, url);
                if let Some(detail) = detail {
                    self.label(tag::IMAGE_DETAIL, detail.label());
                }
            }
            Item::Audio { data, format } => {
                self.text(tag::RECORDING, data);
                self.label(tag::RECORDING_FORMAT, format.label());
            }
            Item::File { id, name, data } => {
                self.mark(tag::FILE, &[]);
                self.optional_text(tag::FILE_ID, id.as_deref());
                self.optional_text(tag::FILE_NAME, name.as_deref());
                self.optional_text(tag::FILE_DATA, data.as_deref());
            }
        }
        if let Some(CacheBreakpoint { ttl }) = part.cache_breakpoint {
            self.mark(tag::CACHE_BREAKPOINT, &[]);
            if let Some(ttl) = ttl {
                self.label(tag::CACHE_BREAKPOINT_TTL, ttl.label());
            }
        }
        self.extras(tag::PART_EXTRAS, &part.extras);
    }

    fn reply(&mut self, reply: &AssistantMessage) {
        let AssistantMessage { refusal, audio_id, tool_calls, function_call } = reply;
        self.optional_text(tag::REFUSAL, refusal.as_deref());
        self.optional_text(tag::AUDIO_ID, audio_id.as_deref());
        if !tool_calls.is_empty() {
            self.each(tag::TOOL_CALLS, tool_calls, Self::tool_call);
        }
        if let Some(call) = function_call {
            self.text(tag::FUNCTION_CALL, &call.name);
            self.text(tag::CALL_INPUT, &call.arguments);
        }
    }

    fn tool_call(&mut self, call: &ToolCall) {
        let ToolCall { id, kind, name, input } = call;
        self.text(tag::TOOL_CALL_ID, id);
        self.label(tag::TOOL_KIND, kind.label());
        self.text(tag::NAME, name);
        self.text(tag::CALL_INPUT, input);
    }
}

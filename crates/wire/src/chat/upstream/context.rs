//! Context of an answer besides its bytes: the request's number of choices and its tools, and the provider's
//! own words.

use std::sync::Arc;

use holdfast_domain::debug_as;
use holdfast_domain::request::{Request, Tool};

use super::finish::FinishWords;

/// Facts by which one answer is read, whole or as a stream.
#[derive(Debug, Clone)]
pub struct AnswerContext {
    /// Number of choices in the request.
    pub(super) n: u32,
    pub(super) tools: ToolNames,
    pub(super) words: FinishWords,
}

impl AnswerContext {
    /// Context of an answer with `n` choices to a request without tools.
    #[must_use]
    pub const fn of_choices(n: u32) -> Self {
        Self { n, tools: ToolNames(None), words: FinishWords::NONE }
    }

    /// Context of an answer to `request`, from a provider with words of its own.
    #[must_use]
    pub fn new(request: &Arc<Request>, words: &FinishWords) -> Self {
        let has_tools = !request.tools.is_empty() || !request.functions.is_empty();
        let tools = ToolNames(has_tools.then(|| Arc::clone(request)));
        Self { n: request.n, tools, words: words.clone() }
    }
}

/// Names of the tools of a request, which may be none.
#[derive(Clone)]
pub(super) struct ToolNames(Option<Arc<Request>>);

// Their number: a name may be the caller's own word.
debug_as!(ToolNames as it: "ToolNames({})", it.all().count());

impl ToolNames {
    /// True for the whole name of a tool.
    pub(super) fn has(&self, name: &str) -> bool {
        self.all().any(|own| own == name)
    }

    /// True if a tool's name begins with `start` and goes on with `more`.
    pub(super) fn begins_with(&self, start: &str, more: &str) -> bool {
        let rests = self.all().filter_map(|own| own.strip_prefix(start));
        rests.into_iter().any(|rest| rest.starts_with(more))
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|request| {
            let tools = request.tools.iter().map(|tool| match tool {
                Tool::Function(function) => function.name.as_str(),
                Tool::Custom(custom) => custom.name.as_str(),
            });
            tools.chain(request.functions.iter().map(|function| function.name.as_str()))
        })
    }
}

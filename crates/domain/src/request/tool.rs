//! The tools that a model is offered, and which of them it should call.

use std::collections::BTreeMap;

use super::{Opaque, ToolKind};

/// A tool on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// Takes JSON.
    Function(Function),
    /// Takes text.
    Custom(CustomTool),
}

/// A function on offer.
#[derive(Clone, PartialEq, Eq)]
pub struct Function {
    /// Letters, digits, `_` and `-`: 1 to 64.
    pub name: String,
    /// Purpose, in words for the model.
    pub description: Option<String>,
    /// The schema of its arguments; without one it has none.
    pub parameters: Option<Opaque>,
    /// True if the model must keep to the schema.
    pub strict: Option<bool>,
    /// Members of the tool, next to the function, that are not known here, by name. Only a model that
    /// accepts them gets them; a function in the older form has none.
    pub extras: BTreeMap<String, Opaque>,
}

/// A tool that takes text.
#[derive(Clone, PartialEq, Eq)]
pub struct CustomTool {
    /// Name that the model calls it by.
    pub name: String,
    /// Purpose, in words for the model.
    pub description: Option<String>,
    /// Form of the text that it takes: any, or by a grammar.
    pub format: Option<Opaque>,
    /// Members of the tool that are not known here, by name. Only a model that accepts them gets them.
    pub extras: BTreeMap<String, Opaque>,
}

named! {
    /// Rule by which the model calls tools.
    ToolMode {
        /// Not at all.
        None = "none",
        /// As it likes.
        Auto = "auto",
        /// At least one.
        Required = "required",
    }
}

/// Choice among the tools on offer.
#[derive(Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// By a rule.
    Mode(ToolMode),
    /// A single tool.
    Named {
        /// Sort of the tool.
        kind: ToolKind,
        /// Name of the tool.
        name: String,
    },
    /// Some of those on offer.
    Allowed {
        /// Rule: `auto` or `required`.
        mode: ToolMode,
        /// Each as the caller describes it.
        tools: Vec<Opaque>,
    },
}

/// Choice among the functions on offer: the older form.
#[derive(Clone, PartialEq, Eq)]
pub enum FunctionChoice {
    /// None.
    None,
    /// As it likes.
    Auto,
    /// A single function, by name.
    Named(String),
}

//! The tools that a model is offered, and which of them it should call.

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
    /// What it is for.
    pub description: Option<String>,
    /// The schema of its arguments; without one it has none.
    pub parameters: Option<Opaque>,
    /// Whether the model must keep to the schema.
    pub strict: Option<bool>,
}

/// A tool that takes text.
#[derive(Clone, PartialEq, Eq)]
pub struct CustomTool {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Which text it takes: any, or by a grammar.
    pub format: Option<Opaque>,
}

named! {
    /// Whether the model calls tools.
    ToolMode {
        /// It does not.
        None = "none",
        /// As it likes.
        Auto = "auto",
        /// At least one.
        Required = "required",
    }
}

/// Which tools the model calls.
#[derive(Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// By a rule.
    Mode(ToolMode),
    /// This one.
    Named {
        /// Which sort.
        kind: ToolKind,
        /// Which one.
        name: String,
    },
    /// Some of those on offer.
    Allowed {
        /// By which rule: `auto` or `required`.
        mode: ToolMode,
        /// Each as the caller describes it.
        tools: Vec<Opaque>,
    },
}

/// Which function the model calls: the older form.
#[derive(Clone, PartialEq, Eq)]
pub enum FunctionChoice {
    /// None.
    None,
    /// As it likes.
    Auto,
    /// This one.
    Named(String),
}

//! Parts of pages that several of them show: rows and states of a resource, the page around its forms, references
//! in filters and forms.

pub(crate) mod api_key;
pub(crate) mod example;
pub(crate) mod job;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod person;
pub(crate) mod plain;
pub(crate) mod posting;
pub(crate) mod reference;
pub(crate) mod refusal;
pub(crate) mod route;
pub(crate) mod session;
pub(crate) mod usage;
pub(crate) mod wallet;
pub(crate) mod webhook;

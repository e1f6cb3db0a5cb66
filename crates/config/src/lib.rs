//! The configuration: one TOML file, checked as a whole, with every mistake reported together.
//!
//! [`load`] makes a [`Config`] of a file or a [`BadConfig`] with each mistake and its line;
//! [`Config::change_to`] lists the settings that a running process would take from another one. The values are
//! the `Options` of the crates that they are for, if those have them.
//!
//! Every option has an effect; a key without one is refused. An unset option has the value that
//! `deploy/holdfast.toml` shows. No file, socket or connection is opened here: that is wiring, and the
//! gateway's. Secrets are read, and no type of this crate prints one.

#[cfg(test)]
extern crate self as holdfast_config;

mod brand;
mod change;
mod config;
mod console;
mod document;
mod environment;
mod error;
mod exposure;
mod listen;
mod misplaced;
mod model;
mod node;
mod place;
mod price;
mod process;
mod provider;
mod role;
mod secret_file;
mod secret_path;
mod settings;
mod stamp;
mod telemetry;
#[cfg(test)]
mod tests;
mod value;

pub use crate::brand::{BrandConfig, LogoFile};
pub use crate::change::Change;
pub use crate::config::{Config, load, load_again, load_for};
pub use crate::console::{ConsoleConfig, HoldersConfig};
pub use crate::document::{Mistake, SecretUse};
pub use crate::environment::{allows_core_dumps, arguments, database_password, proxies};
pub use crate::error::BadConfig;
pub use crate::exposure::SecretExposure;
pub use crate::listen::ListenAddress;
pub use crate::node::RelayConfig;
pub use crate::place::{BadPlace, CommandPlace, PlaceSource, admin_key, place};
pub use crate::process::{
    AdminConfig, LimitsConfig, LogConfig, LogFormat, OperationsConfig, RetentionConfig,
    ServerConfig, WebhooksConfig,
};
pub use crate::provider::ProviderKind;
pub use crate::role::RolesConfig;
pub use crate::stamp::FileStamp;
pub use crate::telemetry::TelemetryConfig;
pub use crate::value::Secret;

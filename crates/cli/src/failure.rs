//! Failures of commands, and their exit statuses: 0 done, 1 failed, 2 wrong usage or configuration.

use std::process::ExitCode;

use holdfast_config::{BadConfig, BadPlace};

/// Failure of a command, by who can mend it.
#[derive(Debug)]
pub enum CommandFailure {
    /// The configuration is wrong.
    Config(BadConfig),
    /// The question itself makes no sense.
    Usage(anyhow::Error),
    /// The command was tried and failed: a later attempt may succeed.
    Failed(anyhow::Error),
    /// The command failed, and its output has the failure already.
    Told(Status),
    /// Standard output was closed by its reader, as by `head`: a success, without a reader.
    NobodyReads,
}

/// Refusal of the API, as a command reports it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Refusal {
    /// The failure of a command with this code.
    pub(crate) fn failed(code: impl Into<String>, message: impl Into<String>) -> CommandFailure {
        CommandFailure::Failed(Self { code: code.into(), message: message.into() }.into())
    }
}

/// Result of a command, or of a part of one.
pub type Result<T = (), E = CommandFailure> = std::result::Result<T, E>;

/// Exit status of a failure: 1 for `Failed`, 2 for `Usage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Failed,
    Usage,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        match status {
            Status::Failed => Self::from(1),
            Status::Usage => Self::from(2),
        }
    }
}

impl CommandFailure {
    /// Text for standard error; `None` if the output has it already.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Config(error) => Some(error.to_string()),
            Self::Usage(error) | Self::Failed(error) => Some(format!("{error:#}")),
            Self::Told(_) | Self::NobodyReads => None,
        }
    }

    /// Code of the failure: the API's if the API refused, else one of the command line.
    pub fn code(&self) -> &str {
        match self {
            Self::Config(_) => "bad_configuration",
            Self::Usage(error) | Self::Failed(error) => match error.downcast_ref::<Refusal>() {
                Some(refusal) => &refusal.code,
                None if matches!(self, Self::Usage(_)) => "bad_usage",
                None => "failed",
            },
            Self::Told(_) | Self::NobodyReads => "failed",
        }
    }

    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Usage(_) => Status::Usage.into(),
            Self::Failed(_) => Status::Failed.into(),
            Self::Told(status) => (*status).into(),
            // The reader has all that it needs: a failure would end a script with `pipefail` at its
            // first `head`.
            Self::NobodyReads => ExitCode::SUCCESS,
        }
    }
}

impl From<BadConfig> for CommandFailure {
    fn from(error: BadConfig) -> Self {
        Self::Config(error)
    }
}

impl From<BadPlace> for CommandFailure {
    fn from(error: BadPlace) -> Self {
        Self::Usage(anyhow::Error::msg(error.to_string()))
    }
}

impl From<anyhow::Error> for CommandFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

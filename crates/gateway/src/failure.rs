//! How a command fails, and what the exit status says of it.

use std::process::ExitCode;

use holdfast_config::BadConfig;

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum CommandFailure {
    /// The configuration is wrong.
    Config(BadConfig),
    /// The question itself makes no sense.
    Usage(anyhow::Error),
    /// It was tried and failed.
    Failed(anyhow::Error),
    /// It failed, and the output says how.
    Told(Status),
    /// Whoever read the output went away: nobody is left to tell.
    NobodyReads,
}

/// What the exit status tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
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
    /// What goes to standard error; nothing where everything has been said.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Config(error) => Some(error.to_string()),
            Self::Usage(error) | Self::Failed(error) => Some(format!("{error:#}")),
            Self::Told(_) | Self::NobodyReads => None,
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Usage(_) => Status::Usage.into(),
            Self::Failed(_) => Status::Failed.into(),
            Self::Told(status) => (*status).into(),
            Self::NobodyReads => ExitCode::SUCCESS,
        }
    }
}

impl From<BadConfig> for CommandFailure {
    fn from(error: BadConfig) -> Self {
        Self::Config(error)
    }
}

impl From<anyhow::Error> for CommandFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

//! Files of the API, written as they come: an export may be larger than the memory of this machine.
//!
//! Sent once: an export that was refused because others are in progress is a failure with the server's words. Each part
//! of an answer comes within [`PART_TIME_MAX`].

use std::time::Duration;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use http::{Method, Request};

use super::{AdminClient, AdminClientError, ApiReply, request};
use crate::failure::Result;
use crate::file_output::FileOutput;

/// Time for the head of an answer, and for each of its parts.
pub(super) const PART_TIME_MAX: Duration = Duration::from_secs(120);

/// Outcome of a download.
pub(super) enum Download {
    /// All parts came.
    Ended,
    /// There was no file to write: the API's answer.
    Refused(ApiReply),
    /// A part did not come, or was not written.
    Interrupted(anyhow::Error),
}

impl AdminClient {
    /// Writes a file of the API, and returns true if a row of it is marked as incomplete. `nothing` names in an
    /// error the work that was not done.
    pub(crate) async fn download(
        &self,
        (path, query): (&str, &[(&str, &str)]),
        mut file: FileOutput,
        nothing: &str,
    ) -> Result<bool> {
        let format = file.format().extension();
        let query = [query, &[("format", format)]].concat();
        let request = request(&Method::GET, path, &query, &Bytes::new());
        let request = request.context("the request cannot be written")?;
        let downloaded = self.send_download(request, &mut file).await;
        match downloaded {
            Ok(Download::Ended) => file.finish(),
            Ok(Download::Interrupted(error)) => Err(file.discard(error)),
            Ok(Download::Refused(reply)) => {
                // Only for the removal of the partial file: the reply has the failure that the
                // operator can mend.
                drop(file.discard(anyhow!("refused")));
                Err(reply.error().because(nothing))
            }
            Err(error) => {
                drop(file.discard(anyhow!("no answer")));
                Err(error.because(nothing))
            }
        }
    }

    async fn send_download(
        &self,
        request: Request<Bytes>,
        file: &mut FileOutput,
    ) -> Result<Download, AdminClientError> {
        match self {
            Self::Local(client) => client.download(request, file).await,
            Self::Network(client) => client.download(request, file).await,
        }
    }
}

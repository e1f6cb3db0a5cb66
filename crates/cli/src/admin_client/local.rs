//! The client with direct database access: the API within this process, as the actor `local`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::anyhow;
use bytes::Bytes;
use futures_util::StreamExt;
use holdfast_admin::{AnswerBody, FailureCause, LocalApi};
use http::Request;
use http::response::Parts;

use super::download::Download;
use super::{AdminClientError, ApiReply};
use crate::file_output::FileOutput;

/// The API over an open database.
#[derive(Debug)]
pub(crate) struct InProcessClient {
    api: LocalApi,
    /// Address of the configured listener.
    listens: Option<SocketAddr>,
}

impl InProcessClient {
    pub(crate) const fn new(api: LocalApi, listens: Option<SocketAddr>) -> Self {
        Self { api, listens }
    }

    /// Origin of the listener without a URL, for a browser on this machine. A port of the kernel's choice is known
    /// only to the process that listens.
    pub(super) fn origin(&self) -> Option<String> {
        let is_served =
            |it: &SocketAddr| it.ip() == Ipv4Addr::LOCALHOST || it.ip() == Ipv6Addr::LOCALHOST;
        let listens = self.listens.filter(|it| it.port() != 0).filter(is_served)?;
        Some(format!("http://{listens}"))
    }

    /// Sends a request once: the store behind it has timeouts of its own.
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<ApiReply, AdminClientError> {
        let key = request.headers().get("idempotency-key");
        let key = key.and_then(|key| key.to_str().ok()?.parse().ok());
        let (head, body) = self.api.answer(request).await.into_parts();
        let body =
            body.collected().await.map_err(|error| AdminClientError::Lost(anyhow!(error)))?;
        let reply = reply(&head, body);
        match key {
            Some(key) if reply.is_outcome_unknown() => {
                let why = Box::new(AdminClientError::Lost(anyhow!("the store gave no verdict")));
                Err(AdminClientError::Uncertain { key, why })
            }
            _ => Ok(reply),
        }
    }

    /// Sends a request for a file, and writes what comes.
    pub(super) async fn download(
        &self,
        request: Request<Bytes>,
        file: &mut FileOutput,
    ) -> Result<Download, AdminClientError> {
        let (head, body) = self.api.answer(request).await.into_parts();
        let mut parts = match body {
            AnswerBody::Whole(body) => return Ok(Download::Refused(reply(&head, body))),
            AnswerBody::Streamed(parts) => parts,
        };
        while let Some(part) = parts.next().await {
            let written = part.map_err(|error| anyhow!(error));
            let written = written.and_then(|part| Ok(file.write(&part)?));
            if let Err(error) = written {
                return Ok(Download::Interrupted(error));
            }
        }
        Ok(Download::Ended)
    }
}

fn reply(head: &Parts, body: Bytes) -> ApiReply {
    ApiReply {
        status: head.status.as_u16(),
        replayed: head.headers.get("idempotent-replayed").is_some_and(|it| it == "true"),
        // The store has repeated the command for as long as its own timeouts allow.
        is_temporary: false,
        body,
        cause: head.extensions.get().map(|FailureCause(cause)| cause.clone()),
    }
}

//! Exporter of spans: batches, posted to a collector as OTLP over HTTP.
//!
//! ```text
//! queue ─▶ batch: BATCH spans, or what came within WAIT ─▶ POST ─┬─ 2xx ─▶ exported, but for what it rejects
//!                                                                └─ anything else, or late ─▶ lost, counted
//! ```
//!
//! A task of its own, and one request at a time. While a collector is slow the queue fills, and spans that find
//! no room there are lost: no request waits for it. No batch is sent again, because a collector that is down
//! for long would only make the queue lose others. At the end of the process the spans that wait are sent
//! within `FLUSH`.
//!
//! Never: a span, a header or the collector's words in the log.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use holdfast_config::TelemetryConfig;
use holdfast_domain::ErrorChain;
use holdfast_net::{PassedFailure, Proxies, ServerClient};
use holdfast_telemetry::traces::{Resource, SpanQueue, SpanResult, encode, rejected};
use http::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Spans of one request at most.
const BATCH: usize = 512;
/// Wait for more spans once one is there.
const WAIT: Duration = Duration::from_secs(1);
/// Time to export what waits at the end of the process.
const FLUSH: Duration = Duration::from_secs(5);
/// The most of an answer that is read, in bytes.
const ANSWER_MAX: usize = 64 << 10;

/// Export of spans, until it is closed.
pub(crate) struct Exporter {
    closing: CancellationToken,
    tasks: JoinSet<()>,
}

impl Exporter {
    /// Exports what comes to this queue.
    pub(crate) fn start(
        config: &TelemetryConfig,
        node: &str,
        proxies: Proxies,
        queue: SpanQueue,
    ) -> anyhow::Result<Self> {
        let own = [("service.name", "holdfast"), ("service.instance.id", node)];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let resource = own.into_iter().chain(config.resource.clone());
        let mut headers = config.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let agent = concat!("holdfast/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let task = ExportTask {
            client: ServerClient::new(proxies, ServerClient::POOL_IDLE)
                .context("telemetry.endpoint")?,
            address: config.traces_url.join("").context("telemetry.endpoint")?,
            headers,
            time: config.timeout,
            resource: Resource::new(env!("CARGO_PKG_VERSION"), resource),
            is_well: true,
        };
        let (closing, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(task.run(queue, closing.clone()));
        Ok(Self { closing, tasks })
    }

    /// Exports what waits, within [`FLUSH`], and ends.
    pub(crate) async fn close(mut self) {
        self.closing.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(FLUSH, ended).await.is_err() {
            tracing::warn!("the collector of traces does not answer: the last spans are lost");
        }
    }
}

/// Failure to export a batch.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error(transparent)]
    Passed(#[from] PassedFailure),
    #[error("the collector answered {0}")]
    Refused(StatusCode),
    #[error("the collector did not answer in time")]
    Late(#[source] tokio::time::error::Elapsed),
}

struct ExportTask {
    client: ServerClient,
    address: Uri,
    headers: HeaderMap,
    time: Duration,
    resource: Resource,
    /// False from a failure on until a batch is taken: each change is logged once.
    is_well: bool,
}

impl ExportTask {
    async fn run(mut self, mut queue: SpanQueue, closing: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            let received = tokio::select! {
                // Biased: a closed queue returns the spans that wait in it, and then zero for ever.
                biased;
                () = closing.cancelled() => {
                    queue.close();
                    queue.receive(&mut batch, BATCH).await
                }
                received = queue.receive(&mut batch, BATCH) => received,
            };
            if received == 0 {
                return;
            }
            let until = Instant::now() + WAIT;
            while batch.len() < BATCH && !closing.is_cancelled() {
                let room = BATCH.saturating_sub(batch.len());
                let more = tokio::select! {
                    () = closing.cancelled() => break,
                    more = timeout_at(until, queue.receive(&mut batch, room)) => more,
                };
                // Late, or no sender is left.
                let Ok(1..) = more else { break };
            }
            let spans = batch.len();
            let body = encode(&self.resource, &mut batch);
            let exported = self.post(body.into()).await;
            self.report(spans, exported);
        }
    }

    /// Sends a batch once; the number of its spans that the collector rejects.
    async fn post(&self, body: Bytes) -> Result<usize, ExportError> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.address.clone();
        *request.headers_mut() = self.headers.clone();
        let exchange = async {
            let mut answer = self.client.send(request, self.time).await?;
            if !answer.status.is_success() {
                return Err(ExportError::Refused(answer.status));
            }
            let mut text = Vec::new();
            while let Some(piece) = answer.next().await? {
                text.extend_from_slice(&piece);
                if text.len() > ANSWER_MAX {
                    break;
                }
            }
            Ok(rejected(&text))
        };
        timeout(self.time, exchange).await.map_err(ExportError::Late)?
    }

    fn report(&mut self, spans: usize, exported: Result<usize, ExportError>) {
        let is_well = exported.is_ok();
        match exported {
            Ok(rejected) => {
                SpanResult::Failed.count(rejected.min(spans));
                SpanResult::Exported.count(spans.saturating_sub(rejected));
                if !self.is_well {
                    tracing::info!("the collector of traces takes spans again");
                }
            }
            Err(error) => {
                SpanResult::Failed.count(spans);
                if self.is_well {
                    tracing::warn!(
                        error = %ErrorChain(&error),
                        "the collector of traces does not take spans: they are lost"
                    );
                }
            }
        }
        self.is_well = is_well;
    }
}

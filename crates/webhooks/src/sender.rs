//! Sender of deliveries: what is sent, and the steps of one try.
//!
//! Each failure has its label in [`TryResult`], which goes into a row; its cause goes into a log line at
//! `debug`, with the origin and the event and no other part of the delivery.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::admin::webhook::{DeliveryRoom, Endpoint, Scheme, TryResult, WebhookTenant};
use holdfast_domain::debug_as;
use holdfast_domain::private::Private;
use holdfast_domain::secret::WebhookKey;
use holdfast_domain::{ErrorChain, EventId, Timestamp, WebhookId};
use holdfast_net::{BadOptions, tls};
use http::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Full;
use rustls::pki_types::InvalidDnsNameError;
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use crate::connect::{connect, server_name};
use crate::exchange::{DeliveryExchangeError, exchange};
use crate::options::SenderOptions;
use crate::permits::{Permit, Permits};
use crate::resolve::{AddressError, Resolver, addresses};
use crate::signature::signatures;

/// Event on its way to an endpoint.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Event to deliver: its id is the same at every attempt, by which the receiver recognises a repetition.
    pub event: EventId,
    /// Endpoint of the webhook, judged by the list of origins of now.
    pub endpoint: Endpoint,
    /// Keys that sign, the latest first.
    pub keys: Vec<WebhookKey>,
    /// Moment of this try; receivers refuse one that is minutes away from their own clock.
    pub sent_at: Timestamp,
    /// The event as JSON.
    pub body: Private<Bytes>,
}

/// Sends deliveries.
pub struct Sender {
    try_time_max: Duration,
    resolver: Arc<dyn Resolver>,
    tls: TlsConnector,
    permits: Permits,
}

/// Failure of a try, with its cause.
#[derive(Debug, thiserror::Error)]
enum TryError {
    #[error("the request cannot be written")]
    Request(#[source] http::Error),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("no address of the host takes connections")]
    Unreached(#[source] io::Error),
    #[error("the host's name is none that a certificate can have")]
    Name(#[source] InvalidDnsNameError),
    #[error("TLS does not come about")]
    Tls(#[source] io::Error),
    #[error(transparent)]
    Exchange(#[from] DeliveryExchangeError),
    #[error("the connection did not come about in time")]
    TimedOut(#[source] Elapsed),
}

impl Sender {
    /// A sender with these options, and with all permits.
    ///
    /// # Errors
    ///
    /// If TLS cannot be set up with these options.
    pub fn new(options: SenderOptions) -> Result<Self, BadOptions> {
        let SenderOptions { try_time_max, extra_roots, resolver } = options;
        let mut tls = tls(extra_roots)?;
        // The exchange speaks HTTP/1.1 only: a server that chose HTTP/2 would not understand it.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(tls));
        Ok(Self { try_time_max, resolver, tls, permits: Permits::default() })
    }

    /// Permit for one try; `None` if the webhook, its wallet or the process has none left.
    #[must_use]
    pub fn permit(&self, tenant: WebhookTenant, webhook: WebhookId) -> Option<Permit> {
        self.permits.take(tenant, webhook)
    }

    /// Permits that the process has left: so many deliveries can be sent at once.
    #[must_use]
    pub fn free(&self) -> usize {
        self.permits.room().free
    }

    /// Room that is left for deliveries: places of the process, and of each webhook.
    #[must_use]
    pub fn room(&self) -> DeliveryRoom {
        self.permits.room()
    }

    /// Looks an endpoint up and judges its addresses, as a try does; connects to none of them.
    ///
    /// # Errors
    ///
    /// If there is no address, or one that is not public.
    pub async fn check(&self, endpoint: &Endpoint) -> Result<(), AddressError> {
        let addresses = addresses(endpoint, self.resolver.as_ref());
        let found = timeout(self.try_time_max, addresses).await;
        found.map_err(AddressError::TimedOut)?.map(drop)
    }

    /// Sends once. The permit is given back at the end. Dropping the future closes the connection:
    /// the receiver may have got the delivery all the same.
    pub async fn send(&self, permit: Permit, delivery: Delivery) -> TryResult {
        let (event, origin) = (delivery.event, delivery.endpoint.origin().clone());
        let result = match self.attempt(delivery).await {
            Ok(status) => TryResult::Answered(status.as_u16()),
            Err(error) => {
                let cause = ErrorChain(&error);
                tracing::debug!(event.id = %event, %origin, error = %cause, "delivery failed");
                error.result()
            }
        };
        // Noted before the place is free: else the next attempt is let in by the result before
        // this one.
        permit.note(result);
        drop(permit);
        result
    }

    async fn attempt(&self, delivery: Delivery) -> Result<StatusCode, TryError> {
        // One for all steps: limits for each would add up, perhaps beyond the delivery's lease.
        let deadline = Instant::now() + self.try_time_max;
        let endpoint = delivery.endpoint.clone();
        let request = request(delivery).map_err(TryError::Request)?;
        let tcp = timeout_at(deadline, self.reach(&endpoint)).await;
        let tcp = tcp.map_err(TryError::TimedOut)??;
        let origin = endpoint.origin();
        match origin.scheme {
            Scheme::Http => Ok(exchange(tcp, request, deadline).await?),
            Scheme::Https => {
                let name = server_name(&origin.host).map_err(TryError::Name)?;
                let encrypted = timeout_at(deadline, self.tls.connect(name, tcp)).await;
                let encrypted = encrypted.map_err(TryError::TimedOut)?.map_err(TryError::Tls)?;
                Ok(exchange(encrypted, request, deadline).await?)
            }
        }
    }

    /// Connects to an address of the endpoint that was judged by this very try.
    async fn reach(&self, endpoint: &Endpoint) -> Result<TcpStream, TryError> {
        let addresses = addresses(endpoint, self.resolver.as_ref()).await?;
        connect(&addresses).await.map_err(TryError::Unreached)
    }
}

debug_as!(Sender as it: "Sender({} permits)", it.free());

/// Delivery as a request: its id, its moment, its signatures, and the event.
fn request(delivery: Delivery) -> http::Result<Request<Full<Bytes>>> {
    let Delivery { event, endpoint, keys, sent_at, body: Private(body) } = delivery;
    let (id, seconds) = (event.to_string(), sent_at.as_seconds());
    let signature = signatures(&keys, &id, seconds, &body);
    Request::post(endpoint.target())
        .header(HOST, endpoint.origin().authority())
        .header(USER_AGENT, concat!("holdfast/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/json")
        // The next delivery may be hours away.
        .header(CONNECTION, "close")
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds)
        .header("webhook-signature", signature)
        .body(Full::new(body))
}

impl TryError {
    const fn result(&self) -> TryResult {
        match self {
            Self::Request(_) => TryResult::UrlRefused,
            Self::Address(AddressError::NotFound(_)) => TryResult::HostNotFound,
            Self::Address(AddressError::NotPublic) => TryResult::AddressRefused,
            Self::Unreached(_) => TryResult::Unreached,
            Self::Name(_) | Self::Tls(_) => TryResult::TlsFailed,
            Self::Exchange(DeliveryExchangeError::Broken(_)) => TryResult::Broken,
            Self::Address(AddressError::TimedOut(_))
            | Self::Exchange(DeliveryExchangeError::TimedOut(_))
            | Self::TimedOut(_) => TryResult::TimedOut,
        }
    }
}

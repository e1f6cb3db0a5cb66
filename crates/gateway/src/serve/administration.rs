//! The API of administration and the console, put on their listeners.
//!
//! | listener | has |
//! |---|---|
//! | `admin.listen` | metrics, probes, the API of administration, operators' pages; without a file everybody's pages |
//! | `console.listen` | probes, holders' pages |
//!
//! They are served if keys and passwords cannot cross a network in plain text: on loopback, or behind a proxy
//! with TLS that `admin.url` or `console.url` names. On other addresses the operator's listener has only
//! metrics and probes, and the log has the reason: an upgrade opens no page on an address that was meant for a
//! scraper.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use holdfast_admin::{AdminApi, AdminOptions, AnswerBody};
use holdfast_config::{AdminConfig, BrandConfig, LogoFile};
use holdfast_console::{ApiRelay, Audience, Brand, Console, ConsoleOptions, Logo};
use holdfast_domain::ports::Unavailable;
use holdfast_http::{AdminHandler, Administration, HandlerBody, HoldersPages, PublicApi};
use holdfast_net::RefusalLog;
use http::{Request, Response};

use super::app::App;
use super::banner::reachable;

/// The public API of this process, for the playground.
#[derive(Debug)]
struct LocalRelay(PublicApi);

#[async_trait]
impl ApiRelay for LocalRelay {
    async fn ask(
        &self,
        request: Request<Bytes>,
        client: IpAddr,
    ) -> Result<Response<BoxStream<'static, Bytes>>, Unavailable> {
        let answered = self.0.answer(request, client).await;
        let answer = answered.map_err(|error| Unavailable(Box::new(error)))?;
        Ok(answer.map(holdfast_http::LocalBody::into_stream))
    }
}

fn handled(body: AnswerBody) -> HandlerBody {
    match body {
        AnswerBody::Whole(bytes) => HandlerBody::Whole(bytes),
        AnswerBody::Streamed(parts) => HandlerBody::Streamed(parts),
    }
}

/// Handlers of the listeners for people and their programs.
pub(super) struct Doors {
    pub(super) administration: Option<Administration>,
    pub(super) holders: Option<HoldersPages>,
}

impl Doors {
    /// The doors at the addresses of the listeners.
    pub(super) fn open(app: &App) -> Self {
        let admin = app.config.admin.as_ref().zip(app.addresses.admin);
        Self {
            administration: admin.and_then(|(settings, at)| app.administration(settings, at)),
            holders: app.holders(),
        }
    }
}

impl App {
    /// The API and the operators' pages; `None` if they may not be served.
    fn administration(
        &self,
        settings: &AdminConfig,
        listens: SocketAddr,
    ) -> Option<Administration> {
        let Some(options) = AdminOptions::new(listens, settings.url.clone()) else {
            tracing::warn!(
                %listens,
                "administration is not served: admin.listen is not on loopback and there is no https:// \
                 address in admin.url"
            );
            return None;
        };
        let holders = self.config.console.holders.as_ref().zip(self.addresses.console);
        let options = options.with_holders(holders.map(|(holders, at)| holders.origin(at)));
        // Without a file there is one listener for everybody, on this machine alone.
        let is_embedded = self.config.file.is_none();
        let audience = if is_embedded { Audience::Everyone } else { Audience::Operators };
        let (console, pages) = self.console(options.clone(), audience);
        let api = AdminApi::new(self.accounts.clone(), options);
        Some(Administration {
            refusals: std::iter::once(api.refusals()).chain(pages).collect(),
            api: Arc::new(move |request, client| {
                let api = api.clone();
                Box::pin(async move { api.answer(request, client).await.map(handled) })
            }),
            console,
            proxies: settings.proxies.as_slice().into(),
        })
    }

    /// The pages of holders at their own listener.
    fn holders(&self) -> Option<HoldersPages> {
        let settings = self.config.console.holders.as_ref()?;
        // The configuration was refused if there is none.
        let options = AdminOptions::new(self.addresses.console?, settings.url.clone())?;
        let (console, refusals) = self.console(options, Audience::Holders);
        Some(HoldersPages {
            console,
            refusals,
            engine: Arc::clone(&self.engine),
            proxies: settings.proxies.as_slice().into(),
        })
    }

    /// The pages, and the logs of their requests without a session.
    fn console(
        &self,
        address: AdminOptions,
        audience: Audience,
    ) -> (AdminHandler, Vec<Arc<RefusalLog>>) {
        let relay = || -> Arc<dyn ApiRelay> { Arc::new(LocalRelay(self.api.clone())) };
        let options = ConsoleOptions {
            address,
            audience,
            base_url: self.base_url(),
            playground: self.config.console.playground.then(relay),
            patience: ConsoleOptions::PATIENCE,
            brand: self.brand(),
        };
        let console = Console::new(self.accounts.clone(), options);
        let refusals = console.refusals();
        let handler: AdminHandler = Arc::new(move |request, client| {
            let console = console.clone();
            Box::pin(async move { console.answer(request, client).await.map(handled) })
        });
        (handler, refusals)
    }

    /// The operator's brand on holders' pages.
    fn brand(&self) -> Brand {
        let BrandConfig { name, logo, support_url, top_up_url } = self.config.console.brand.clone();
        let logo =
            logo.map(|LogoFile { media_type, bytes }| Logo { media_type, bytes: bytes.into() });
        Brand { name, logo, support_url, top_up_url }
    }

    /// Base URL of the public API for callers.
    fn base_url(&self) -> String {
        let url = self.config.server.url.as_ref().map(ToString::to_string);
        let own = || format!("http://{}", reachable(self.addresses.public));
        format!("{}/v1", url.unwrap_or_else(own))
    }
}

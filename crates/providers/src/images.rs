//! URLs of pictures that a provider may be handed. The gateway fetches none; the host of the model does, and
//! may be in a network that callers must not reach: that of the operator's own services.
//!
//! URLs that name the fetching machine itself are refused before this, for every provider. Names are handed on
//! as they are: their resolution is for the fetching host, and for the network around it.

use std::net::IpAddr;

use holdfast_domain::ports::UnsupportedParam;
use holdfast_domain::request::{Item, Request};
use holdfast_wire::chat::request::literal_addresses;

use crate::refusals::unsupported;

/// Rule for URLs of pictures, by their scheme; each step allows more than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImageUrls {
    /// Pictures that are sent along.
    Data,
    /// Pictures that are sent along, and `https:` URLs: their host has a certificate.
    #[default]
    Https,
    /// Every URL, `http:` included.
    Any,
}

impl ImageUrls {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Data, Self::Https, Self::Any];

    /// The name in configuration.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Https => "https",
            Self::Any => "any",
        }
    }

    const fn rule(self) -> &'static str {
        match self {
            Self::Data => "a data: URL for this model",
            Self::Https => "an https: or data: URL for this model",
            Self::Any => "an https:, http: or data: URL for this model",
        }
    }
}

/// The pictures that one provider takes.
#[derive(Debug)]
pub(crate) struct ImagePolicy {
    pub(crate) urls: ImageUrls,
    /// Addresses of the machine that the gateway runs on.
    pub(crate) own: Vec<IpAddr>,
}

impl ImagePolicy {
    /// Finds the first picture that the provider may not be handed.
    pub(crate) fn check(&self, request: &Request) -> Result<(), UnsupportedParam> {
        for (at, message) in request.messages.iter().enumerate() {
            for (part_at, part) in message.parts().iter().enumerate() {
                let Item::Image { url, .. } = &part.item else { continue };
                if let Some(rule) = self.refusal(url) {
                    let param = format!("messages[{at}].content[{part_at}].image_url.url");
                    return Err(unsupported(param, rule));
                }
            }
        }
        Ok(())
    }

    fn refusal(&self, url: &str) -> Option<&'static str> {
        let begins = |scheme: &str| {
            url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        if begins("data:") {
            return None;
        }
        let is_handed_on = match self.urls {
            ImageUrls::Data => false,
            ImageUrls::Https => begins("https:"),
            ImageUrls::Any => true,
        };
        if !is_handed_on {
            return Some(self.urls.rule());
        }
        // This machine by any of its addresses: a model run beside the gateway could reach its
        // services.
        let is_own = literal_addresses(url).iter().any(|address| self.own.contains(address));
        is_own.then_some("the address of a public host: not of this gateway")
    }
}

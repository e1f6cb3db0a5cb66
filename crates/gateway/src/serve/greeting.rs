//! Greeting of the embedded default: the place of its data, its first API key, and a line to try
//! it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use uuid::Uuid;

use super::say;
use super::start::DEFAULT_NAME;
use crate::failure::CommandFailure;
use holdfast_config::Config;

/// `issued`: the API key that was made with an empty database.
pub(super) fn greet(
    config: &Config,
    address: SocketAddr,
    issued: Option<&str>,
) -> Result<(), CommandFailure> {
    say("no configuration file: holdfast runs on what is built in, and reaches nobody")?;
    let data = config.database.file().map(|file| file.display().to_string());
    say(&format!("data: {}", data.unwrap_or_else(|| config.database.to_string())))?;
    say(&format!("what it serves: http://{}/docs", reachable(address)))?;
    let Some(key) = issued else {
        return say(&format!("another API key: holdfast key issue --wallet {DEFAULT_NAME}"));
    };
    say(&format!("made: wallet {DEFAULT_NAME} with 10.00 USD, API key {DEFAULT_NAME}"))?;
    say(&format!("API key: {key}"))?;
    say("keep it now: it is not stored and is not shown again")?;
    say("try this, twice: the second time it is replayed, and nothing is charged")?;
    // A request key of its own at each start: else the first try would replay one of last week.
    say(&curl(address, key, Uuid::new_v4()))
}

/// A line for a shell that sends one request. Nothing in it needs another kind of quotes.
fn curl(address: SocketAddr, key: &str, request_key: Uuid) -> String {
    let address = reachable(address);
    format!(
        "curl -i http://{address}/v1/chat/completions -H 'Authorization: Bearer {key}' \
         -H 'Idempotency-Key: {request_key}' -H 'Content-Type: application/json' \
         -d '{{\"model\":\"holdfast/sim-1\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}'"
    )
}

/// Address at which this machine reaches a listener: loopback for one on every address.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_one_command_with_its_own_request_key() {
        let line = curl((Ipv6Addr::UNSPECIFIED, 8080).into(), "hfk_a_b", Uuid::from_u128(7));
        assert_eq!(
            line,
            "curl -i http://[::1]:8080/v1/chat/completions -H 'Authorization: Bearer hfk_a_b' \
             -H 'Idempotency-Key: 00000000-0000-0000-0000-000000000007' -H 'Content-Type: \
             application/json' -d '{\"model\":\"holdfast/sim-1\",\"messages\":[{\"role\":\"user\",\
             \"content\":\"hello\"}]}'"
        );
    }

    #[test]
    fn only_a_listener_on_every_address_is_reached_at_another() {
        for address in ["10.0.0.1:2", "[::1]:3"] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(reachable(address), address);
        }
        let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8080));
        assert_eq!(reachable(everywhere), (Ipv4Addr::LOCALHOST, 8080).into());
    }
}

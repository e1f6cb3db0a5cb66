//! Start-up banner of the embedded default: its database, its console, its first API key, and a command to try
//! it. The banner is the only output with the key: never write it to a log.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Context;
use holdfast_admin::AdminOptions;
use holdfast_engine::Secrets;
use holdfast_store::Store;
use uuid::Uuid;

use super::print;
use super::start::{DEFAULT_NAME, first_key};
use holdfast_bootstrap::accounts;
use holdfast_cli::failure::CommandFailure;
use holdfast_config::Config;

/// Creates the resources of a first start, and prints the banner. The second address is the operator's
/// listener, if there is one.
pub(super) async fn first_start(
    config: &Config,
    store: &Store,
    secrets: &Secrets,
    (public, admin): (SocketAddr, Option<SocketAddr>),
) -> Result<(), CommandFailure> {
    let issued = first_key(store, secrets).await?;
    let console = console(config, store, secrets, admin).await?;
    print_banner(config, public, &console, issued.as_deref())
}

/// Lines about the console: its address, and while it has no owner, the one-time link to become that.
async fn console(
    config: &Config,
    store: &Store,
    secrets: &Secrets,
    admin: Option<SocketAddr>,
) -> anyhow::Result<Vec<String>> {
    let Some(address) = admin else {
        let taken = config.admin.as_ref().map(|admin| admin.listen.to_string());
        return Ok(vec![format!(
            "console: off, because {} is in use: set HOLDFAST_ADMIN_LISTEN to a free address",
            taken.unwrap_or_default()
        )]);
    };
    if AdminOptions::new(address, None).is_none() {
        return Ok(vec![format!(
            "console: off, because {address} is reachable from other machines"
        )]);
    }
    let base = format!("http://{address}");
    let mut lines = vec![format!("console: {base}/")];
    let link = accounts::over(store, secrets).first_owner_link().await;
    if let Some(token) = link.context("no link for the first owner was created")? {
        lines.push(format!(
            "link for the first owner, valid once within an hour: \
            {base}/link/{}",
            token.expose()
        ));
    }
    Ok(lines)
}

/// `issued`: the API key that was made with an empty database.
fn print_banner(
    config: &Config,
    address: SocketAddr,
    console: &[String],
    issued: Option<&str>,
) -> Result<(), CommandFailure> {
    print(
        "no configuration file: holdfast runs on the embedded default and connects to no provider",
    )?;
    let data = config.database.file().map(|file| file.display().to_string());
    print(&format!("database: {}", data.unwrap_or_else(|| config.database.to_string())))?;
    print(&format!("API documentation: http://{}/docs", reachable(address)))?;
    for line in console {
        print(line)?;
    }
    let Some(key) = issued else {
        return print(&format!("another API key: holdfast key issue --wallet {DEFAULT_NAME}"));
    };
    print(&format!("created: wallet {DEFAULT_NAME} with 10.00 USD, API key {DEFAULT_NAME}"))?;
    print(&format!("API key: {key}"))?;
    print("store this key: the gateway keeps no copy and does not show it again")?;
    print("run this command twice: the second answer is a replay without a charge")?;
    // A request key of its own at each start: else the first try would replay one of last week.
    print(&curl(address, key, Uuid::new_v4()))
}

/// A line for a shell that sends one request. No part of it needs another kind of quotes.
fn curl(address: SocketAddr, key: &str, request_key: Uuid) -> String {
    let address = reachable(address);
    format!(
        "curl -i http://{address}/v1/chat/completions -H 'Authorization: Bearer {key}' \
         -H 'Idempotency-Key: {request_key}' -H 'Content-Type: application/json' \
         -d '{{\"model\":\"holdfast/sim-1\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}'"
    )
}

/// Address at which this machine reaches a listener: loopback for one on every address.
pub(super) fn reachable(mut address: SocketAddr) -> SocketAddr {
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

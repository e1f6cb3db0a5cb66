//! Addresses: every one of a name is judged, and no other than a judged one is connected to.

use std::sync::Arc;

use holdfast_domain::admin::webhook::TryResult;
use holdfast_webhooks::AddressError;

use crate::names::{Names, NoNames};
use crate::receiver::{Receiver, status};
use crate::sample::{allowed, judged, send, sender, sender_by};

const PUBLIC: &str = "9.9.9.9";

#[tokio::test]
async fn names_of_addresses_that_are_not_public_are_refused() {
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "2002:7f00:1::1",
    ] {
        let names = Arc::new(Names::of(&[address]));
        let sender = sender_by(&names);
        let result = send(&sender, judged("https://hooks.test/in")).await;
        assert_eq!(result, TryResult::AddressRefused, "{address}");
        assert_eq!(names.asked(), ["hooks.test"]);
    }
}

/// Only looked up: nothing is to be sent to a public address, were the rule broken.
#[tokio::test]
async fn one_address_that_is_not_public_spoils_the_others() {
    for addresses in [[PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "::ffff:10.0.0.1"]] {
        let sender = sender_by(&Arc::new(Names::of(&addresses)));
        let checked = sender.check(&judged("https://hooks.test/in")).await;
        assert!(matches!(checked, Err(AddressError::NotPublic)), "{checked:?}");
        assert!(!checked.unwrap_err().to_string().contains("127"), "it tells no address");
    }
    let sender = sender_by(&Arc::new(Names::of(&[PUBLIC, "2606:4700::1111"])));
    assert!(sender.check(&judged("https://hooks.test/in")).await.is_ok());
}

#[tokio::test]
async fn a_name_that_changes_after_it_was_checked_is_refused() {
    let names = Arc::new(Names::changing(&[&[PUBLIC], &["127.0.0.1"]]));
    let sender = sender_by(&names);
    let endpoint = judged("https://hooks.test/in");
    assert!(sender.check(&endpoint).await.is_ok());
    assert_eq!(send(&sender, endpoint).await, TryResult::AddressRefused);
    assert_eq!(names.asked().len(), 2);
}

#[tokio::test]
async fn the_address_that_was_judged_is_the_one_that_is_connected_to() {
    let receiver = Receiver::start(status(200)).await;
    // A second look-up would lead elsewhere on this machine, where nobody listens.
    let names = Arc::new(Names::changing(&[&["127.0.0.1"], &["127.0.0.2"]]));
    let sender = sender_by(&names);
    let result = send(&sender, allowed(&receiver.url("hooks.test", "/in"))).await;
    assert_eq!(result, TryResult::Answered(200));
    assert_eq!(names.asked(), ["hooks.test"]);
}

#[tokio::test]
async fn an_address_that_is_dead_leaves_the_time_to_the_next() {
    let receiver = Receiver::start(status(200)).await;
    let sender = sender_by(&Arc::new(Names::of(&["127.0.0.2", "127.0.0.3", "127.0.0.1"])));
    let result = send(&sender, allowed(&receiver.url("hooks.test", "/in"))).await;
    assert_eq!(result, TryResult::Answered(200));
}

#[tokio::test]
async fn names_without_an_address_are_not_found() {
    for sender in [sender_by(&Arc::new(Names::of(&[]))), sender_by(&Arc::new(NoNames))] {
        let endpoint = judged("https://hooks.test/in");
        assert!(matches!(sender.check(&endpoint).await, Err(AddressError::NotFound(_))));
        assert_eq!(send(&sender, endpoint).await, TryResult::HostNotFound);
    }
}

#[tokio::test]
async fn the_name_of_this_machine_is_looked_up_and_refused() {
    let result = send(&sender(), judged("https://localhost/in")).await;
    assert_eq!(result, TryResult::AddressRefused);
}

#[tokio::test]
async fn addresses_that_are_written_out_are_not_looked_up() {
    let names = Arc::new(Names::of(&["127.0.0.1"]));
    let sender = sender_by(&names);
    assert!(sender.check(&judged("https://9.9.9.9/in")).await.is_ok());
    assert_eq!(names.asked(), Vec::<String>::new());
}

//! Laws of the statistics of routes, on both databases and on the fake.

use holdfast_testkit::MemoryJournal;
use holdfast_testkit::route_laws as routes;

use crate::scratch::{Home, on_every_store};

async fn attempts_add_up(home: &impl Home) {
    routes::attempts_add_up(home.store()).await;
}

async fn the_newest_failures_are_kept(home: &impl Home) {
    routes::the_newest_failures_are_kept(home.store()).await;
}

async fn breakers_go_with_their_lease(home: &impl Home) {
    routes::breakers_go_with_their_lease(home.store()).await;
}

async fn old_attempts_are_purged(home: &impl Home) {
    routes::old_attempts_are_purged(home.store()).await;
}

on_every_store! {
    attempts_add_up,
    the_newest_failures_are_kept,
    breakers_go_with_their_lease,
    old_attempts_are_purged,
}

#[tokio::test]
async fn the_fake_keeps_the_same_laws() {
    routes::attempts_add_up(&MemoryJournal::new()).await;
    routes::the_newest_failures_are_kept(&MemoryJournal::new()).await;
    routes::breakers_go_with_their_lease(&MemoryJournal::new()).await;
    routes::old_attempts_are_purged(&MemoryJournal::new()).await;
}

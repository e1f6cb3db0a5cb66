//! Sign-in over both databases: sessions, browsers that are known, and what the audit log has of failures and reads.

use std::net::IpAddr;

use holdfast_accounts::{Password, Principal, Reference, SignInError};
use holdfast_domain::WalletId;
use holdfast_domain::admin::listing::{Order, PageRequest, Period, PersonFilter, TrailFilter};
use holdfast_domain::admin::ports::Sessions as _;
use holdfast_domain::admin::report::{GroupBy, Grouping, UsageQuery};
use holdfast_domain::admin::{
    ActorId, BROWSER_MARKS_MAX, PasswordHash, ResourceId, SESSIONS_MAX, UseCase,
};
use holdfast_domain::secret::BrowserToken;

use crate::administration::make_wallet;
use crate::people::{Desk, OWNER, origin, password, request};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

async fn a_changed_password_ends_the_other_sessions(home: &impl Home) {
    let desk = Desk::of(home).await;
    desk.member("ada@example.com", OWNER).await;
    let (token, signed_in) = desk.sign_in("ada@example.com").await.unwrap();
    let (other, _) = desk.sign_in("ada@example.com").await.unwrap();
    assert_eq!(desk.accounts.sessions_of(&signed_in).await.unwrap().len(), 2);
    let next: Password = "another horse battery".parse().unwrap();
    let wrong =
        desk.accounts.change_password(&signed_in, &next, &password(), &origin(1, None)).await;
    assert!(matches!(wrong, Err(SignInError::Wrong)));
    let slow =
        desk.accounts.change_password(&signed_in, &password(), &next, &origin(1, None)).await;
    assert!(matches!(slow, Err(SignInError::Slow { .. })), "a failure slows down");
    let desk = Desk::of(home).await;
    let (old, from) = (password(), origin(1, None));
    let changed = desk.accounts.change_password(&signed_in, &old, &next, &from);
    let renewed = changed.await.unwrap();
    assert!(desk.is_ended(&other).await && desk.is_ended(&token).await);
    assert!(!desk.is_ended(&renewed.token).await, "the session continues under another token");
    assert!(matches!(desk.sign_in("ada@example.com").await, Err(SignInError::Wrong)));
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn sessions_end_by_age_and_by_silence_and_are_bounded(home: &impl Home) {
    let desk = Desk::of(home).await;
    desk.member("ada@example.com", OWNER).await;
    let mut raw = Raw::open(home).await;
    for (column, hours) in [("last_seen_at", 12), ("created_at", 24 * 7)] {
        let (token, _) = desk.sign_in("ada@example.com").await.unwrap();
        assert!(!desk.is_ended(&token).await);
        let age = hours * 3_600_000_000_i64;
        raw.run(&format!("UPDATE sessions SET {column} = {column} - {age}")).await;
        assert!(desk.is_ended(&token).await, "{column}");
    }
    let (_token, signed_in) = desk.sign_in("ada@example.com").await.unwrap();
    assert_eq!(raw.number("SELECT count(*) FROM sessions").await, 1, "the ended ones are gone");
    let signed_in_before = "UPDATE sessions SET signed_in_at = signed_in_at - 900000000";
    raw.run(signed_in_before).await;
    let listed = desk.accounts.sessions_of(&signed_in).await.unwrap();
    assert!(!listed[0].is_fresh(signed_in.now));
    for n in 1..=i64::from(SESSIONS_MAX) {
        let copy = format!(
            "INSERT INTO sessions SELECT randomblob(16), person_id, randomblob(32), role, wallet_id,
             created_at - {n}, last_seen_at, signed_in_at, address
             FROM sessions ORDER BY created_at DESC LIMIT 1"
        );
        raw.run(&copy).await;
    }
    desk.sign_in("ada@example.com").await.unwrap();
    let count = raw.number("SELECT count(*) FROM sessions").await;
    assert_eq!(count, i64::from(SESSIONS_MAX));
}

async fn a_mark_is_of_one_browser_and_of_one_password(home: &impl Home) {
    let desk = Desk::of(home).await;
    let ada = desk.member("ada@example.com", OWNER).await;
    desk.member("bob@example.com", OWNER).await;
    let (wrong, next): (Password, Password) =
        ("wrong horse battery".parse().unwrap(), "another horse battery".parse().unwrap());
    let first = desk.begin("ada@example.com", &password(), None).await.unwrap();
    let second = desk.begin("ada@example.com", &password(), None).await.unwrap();
    let (one, two) = (first.mark.as_ref().unwrap(), second.mark.as_ref().unwrap());
    assert_ne!(one.expose(), two.expose(), "one for each browser");
    let again = desk.begin("ada@example.com", &password(), Some(one)).await.unwrap();
    assert_eq!(again.mark.unwrap().expose(), one.expose(), "a browser keeps its mark");
    let slowed = async |email: &str, mark: Option<&BrowserToken>| {
        matches!(desk.begin(email, &password(), mark).await, Err(SignInError::Slow { .. }))
    };
    for email in ["ada@example.com", "bob@example.com"] {
        let failed = desk.begin(email, &wrong, None).await;
        assert!(matches!(failed, Err(SignInError::Wrong)));
        assert!(slowed(email, None).await);
    }
    assert!(slowed("bob@example.com", Some(one)).await, "it is a mark of another person");
    assert!(
        !slowed("ada@example.com", Some(one)).await && !slowed("ada@example.com", Some(two)).await
    );
    let listed = desk.accounts.browsers_of(&first.signed_in).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|browser| browser.person == ada));
    // Its own failures slow a browser down, and no other one.
    assert!(matches!(
        desk.begin("ada@example.com", &wrong, Some(one)).await,
        Err(SignInError::Wrong)
    ));
    assert!(slowed("ada@example.com", Some(one)).await);
    assert!(!slowed("ada@example.com", Some(two)).await);
    let (old, from) = (password(), origin(1, None));
    let changed = desk.accounts.change_password(&first.signed_in, &old, &next, &from);
    let renewed = changed.await.unwrap();
    for ended in [one, two] {
        let begun = desk.begin("ada@example.com", &next, Some(ended)).await.unwrap();
        assert_ne!(begun.mark.unwrap().expose(), ended.expose(), "it ended with its password");
    }
    let renewed = renewed.mark.unwrap();
    let begun = desk.begin("ada@example.com", &next, Some(&renewed)).await.unwrap();
    assert_eq!(begun.mark.unwrap().expose(), renewed.expose());
    desk.accounts.sign_out_everywhere(&begun.signed_in).await.unwrap();
    assert!(desk.is_ended(&begun.token).await);
    let mut raw = Raw::open(home).await;
    let rows = "SELECT count(*) FROM browser_marks AS b JOIN people AS p ON p.id = b.person_id
        WHERE p.email = 'ada@example.com'";
    assert_eq!(raw.number(rows).await, 0);
}

async fn marks_of_a_person_are_bounded(home: &impl Home) {
    let desk = Desk::of(home).await;
    let ada = desk.member("ada@example.com", OWNER).await;
    let address = IpAddr::from([192, 0, 2, 1]);
    let hash = home.store().password_of_person(ada).await.unwrap().unwrap().hash;
    let first = desk.accounts.mark_browser(ada, &hash, address).await.unwrap();
    for _browser in 0..BROWSER_MARKS_MAX {
        desk.accounts.mark_browser(ada, &hash, address).await.unwrap();
    }
    let mut raw = Raw::open(home).await;
    let count = raw.number("SELECT count(*) FROM browser_marks").await;
    assert_eq!(count, i64::from(BROWSER_MARKS_MAX));
    let begun = desk.begin("ada@example.com", &password(), Some(&first)).await.unwrap();
    let begun = begun.mark.unwrap();
    assert_ne!(begun.expose(), first.expose(), "the oldest one is gone");
    // A node of the version before changes a password and knows no marks.
    raw.run("UPDATE person_passwords SET set_at = set_at + 60000000").await;
    let again = desk.begin("ada@example.com", &password(), Some(&begun)).await.unwrap();
    assert_ne!(again.mark.unwrap().expose(), begun.expose(), "it is of another password");
}

async fn a_mark_is_made_under_the_password_that_was_proven_and_fails_no_sign_in(home: &impl Home) {
    let desk = Desk::of(home).await;
    let ada = desk.member("ada@example.com", OWNER).await;
    desk.member("bob@example.com", OWNER).await;
    let mut raw = Raw::open(home).await;
    let count = "SELECT count(*) FROM browser_marks";
    let another = PasswordHash::new("another".to_owned());
    desk.accounts.mark_browser(ada, &another, IpAddr::from([192, 0, 2, 9])).await.unwrap();
    assert_eq!(raw.number(count).await, 0, "the password was changed meanwhile");
    desk.sign_in("bob@example.com").await.unwrap();
    assert_eq!(raw.number(count).await, 1);
    // No mark of another person can be written.
    raw.run("CREATE UNIQUE INDEX one_mark ON browser_marks (address)").await;
    let begun = desk.begin("ada@example.com", &password(), None).await.unwrap();
    assert!(begun.mark.is_none() && !desk.is_ended(&begun.token).await);
    let next: Password = "another horse battery".parse().unwrap();
    let (old, from) = (password(), origin(1, None));
    let changed = desk.accounts.change_password(&begun.signed_in, &old, &next, &from);
    let renewed = changed.await.unwrap();
    assert!(renewed.mark.is_none() && !desk.is_ended(&renewed.token).await);
}

async fn another_link_forgets_the_failures_of_strangers(home: &impl Home) {
    let desk = Desk::of(home).await;
    let ada = desk.member("ada@example.com", OWNER).await;
    let wrong: Password = "wrong horse battery".parse().unwrap();
    for host in 1..=31 {
        let origin = origin(host, None);
        let failed = desk.accounts.sign_in("ada@example.com", &wrong, &origin).await;
        assert!(failed.is_err(), "{failed:?}");
    }
    let right =
        async || desk.accounts.sign_in("ada@example.com", &password(), &origin(99, None)).await;
    assert!(matches!(right().await, Err(SignInError::Slow { .. })), "one attempt a minute");
    let told = desk.accounts.renew_link(&desk.local, &request(), ada).await.unwrap();
    let link = told.thing.link.unwrap();
    desk.accounts.accept_link(&link, Some(&password()), None).await.unwrap();
    right().await.unwrap();
}

async fn failed_sign_ins_and_reads_are_in_the_audit_log(home: &impl Home) {
    let desk = Desk::of(home).await;
    let wallet = make_wallet(home.store(), "acme").await;
    let ada = desk.member("ada@example.com", OWNER).await;
    let owner = Principal::of_person(ada, OWNER, Some("192.0.2.7".to_owned()));
    let wrong: Password = "wrong horse battery".parse().unwrap();
    for (host, email) in [(1, "ada@example.com"), (2, "ada@example.com"), (1, "eve@example.com")] {
        let failed = desk.accounts.sign_in(email, &wrong, &origin(host, None)).await;
        assert!(matches!(failed, Err(SignInError::Wrong)));
    }
    let (page, period) = (PageRequest::first(Order::Oldest, 10), Period { from: None, to: None });
    let payer: Reference = wallet.to_string().parse().unwrap();
    for _read in 0..3 {
        desk.accounts.people(&owner, PersonFilter::default(), page).await.unwrap();
        desk.accounts.statement(&owner, &payer, period, page).await.unwrap();
        desk.accounts.statement(&desk.local, &payer, period, page).await.unwrap();
        desk.accounts.trail(&owner, TrailFilter::default(), page).await.unwrap();
        desk.accounts.usage(&owner, UsageQuery::all(Grouping::by(GroupBy::Wallet))).await.unwrap();
        // A filter may name a wallet that is not there.
        let nowhere = WalletId::from_u128(404);
        let mut query = UsageQuery::all(Grouping::by(GroupBy::Wallet));
        query.filter.wallet = Some(nowhere);
        desk.accounts.usage(&owner, query).await.unwrap();
        let filter = PersonFilter { wallet: Some(nowhere), ..PersonFilter::default() };
        desk.accounts.people(&owner, filter, page).await.unwrap();
        desk.accounts.write_notes(false).await.unwrap();
    }
    // Another process writes no second row of a day.
    let other = Desk::of(home).await;
    other.accounts.people(&owner, PersonFilter::default(), page).await.unwrap();
    other.accounts.write_notes(true).await.unwrap();
    let rows = async |use_case| {
        let filter = TrailFilter { use_case: Some(use_case), ..TrailFilter::default() };
        desk.accounts.trail(&desk.local, filter, page).await.unwrap().rows
    };
    let own = ResourceId::Person(ada);
    for (use_case, thing) in [
        (UseCase::PersonRead, own),
        (UseCase::StatementRead, ResourceId::Wallet(wallet)),
        (UseCase::AuditRead, own),
        (UseCase::UsageRead, own),
    ] {
        let found = rows(use_case).await;
        let found: Vec<_> = found.iter().map(|it| (it.row.actor, it.row.thing)).collect();
        assert_eq!(found, [(ActorId::Person(ada), thing)], "{use_case}: once a day");
    }
    let failed = rows(UseCase::PersonSignInFailed).await;
    assert!(failed.iter().all(|it| it.row.actor == ActorId::Anonymous));
    let failed: Vec<_> =
        failed.iter().map(|it| (it.row.thing, it.address.as_deref().unwrap())).collect();
    assert_eq!(failed.len(), 3);
    for expected in [(own, "192.0.2.1"), (own, "192.0.2.2"), (ResourceId::Unknown, "192.0.2.1")] {
        assert!(failed.contains(&expected), "{failed:?}");
    }
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

on_every_store! {
    a_changed_password_ends_the_other_sessions,
    sessions_end_by_age_and_by_silence_and_are_bounded,
    a_mark_is_of_one_browser_and_of_one_password,
    marks_of_a_person_are_bounded,
    a_mark_is_made_under_the_password_that_was_proven_and_fails_no_sign_in,
    another_link_forgets_the_failures_of_strangers,
    failed_sign_ins_and_reads_are_in_the_audit_log,
}

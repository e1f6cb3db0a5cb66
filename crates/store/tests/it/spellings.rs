//! Rows from before texts and addresses had one form: found in every spelling, and never a second one.

use holdfast_domain::admin::{AccountRefusal, Authority, Reach, Role};

use crate::people::{Desk, OWNER};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

const SUPPORT: Authority = Authority { role: Role::Support, reach: Reach::All };

/// Gives a person's row the spelling that an earlier version wrote.
async fn spell(raw: &mut Raw, from: &str, to: &str) {
    raw.run(&format!("UPDATE people SET email = '{to}' WHERE email = '{from}'")).await;
}

async fn a_person_of_before_signs_in_and_is_one_person(home: &impl Home) {
    let desk = Desk::of(home).await;
    let mut raw = Raw::open(home).await;
    for (number, (row, spellings)) in [
        ("ada@example.com.", ["ada@example.com.", "Ada@example.com"]),
        ("bob@bÜcher.example", ["bob@BÜCHER.example", "bob@bÜcher.example"]),
        ("eve@bücher.example", ["eve@bücher.example.", "eve@xn--bcher-kva.example"]),
        ("e\u{301}@example.com", ["é@example.com", "e\u{301}@example.com."]),
    ]
    .into_iter()
    .enumerate()
    {
        let email = format!("{number}@example.org");
        let person = desk.member(&email, OWNER).await;
        spell(&mut raw, &email, row).await;
        for spelling in spellings {
            let (_token, signed_in) = desk.sign_in(spelling).await.unwrap();
            assert_eq!(signed_in.person.id, person, "{row}: {spelling}");
            let (invited, _link) = desk.invite(&desk.local, spelling, SUPPORT).await.unwrap();
            assert_eq!(invited, person, "{row}: {spelling}");
        }
    }
    assert_eq!(raw.number("SELECT count(*) FROM people").await, 4);
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

async fn an_address_that_no_rule_takes_any_more_signs_in_and_ends(home: &impl Home) {
    let desk = Desk::of(home).await;
    let mut raw = Raw::open(home).await;
    desk.member("owner@example.com", OWNER).await;
    let person = desk.member("x@example.com", SUPPORT).await;
    spell(&mut raw, "x@example.com", "x\u{200b}@example.com").await;
    let (_token, signed_in) = desk.sign_in(" X\u{200b}@example.com").await.unwrap();
    assert_eq!(signed_in.person.id, person);
    assert!(desk.sign_in("x@example.com").await.is_err(), "it is another address");
    assert_eq!(desk.end(person, false).await, Ok::<(), AccountRefusal>(()));
}

async fn of_two_rows_of_one_address_the_typed_one_is_meant(home: &impl Home) {
    let desk = Desk::of(home).await;
    let mut raw = Raw::open(home).await;
    let plain = desk.member("ada@example.com", OWNER).await;
    let dotted = desk.member("b@example.org", OWNER).await;
    spell(&mut raw, "b@example.org", "ada@example.com.").await;
    for (typed, person) in [("ada@example.com", plain), ("Ada@example.com.", dotted)] {
        assert_eq!(desk.sign_in(typed).await.unwrap().1.person.id, person, "{typed}");
        let (invited, _link) = desk.invite(&desk.local, typed, SUPPORT).await.unwrap();
        assert_eq!(invited, person, "{typed}");
    }
    // Both end, although their rows come to have one form.
    for person in [plain, dotted] {
        desk.member(&format!("{person}@example.net"), OWNER).await;
        assert_eq!(desk.end(person, false).await, Ok(()));
    }
}

on_every_store! {
    a_person_of_before_signs_in_and_is_one_person,
    an_address_that_no_rule_takes_any_more_signs_in_and_ends,
    of_two_rows_of_one_address_the_typed_one_is_meant,
}

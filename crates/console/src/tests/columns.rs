//! Columns on small screens: an action and the money of a row stand on each of them.

use super::book::{OpsWorld, owner};
use super::world::World;

/// The tables of a page: their classes, their heads and their rows of cells.
fn tables(html: &str) -> impl Iterator<Item = (Vec<&str>, Vec<&str>, Vec<Vec<&str>>)> {
    html.split("<table class=\"").skip(1).map(|table| {
        let table = table.split("</table>").next().unwrap();
        let (classes, rest) = table.split_once('"').unwrap();
        let (head, body) = rest.split_once("</thead>").unwrap_or(("", rest));
        let heads = head
            .split("</th>")
            .filter_map(|it| it.trim_end_matches("</a>").rsplit('>').next())
            .collect();
        let rows = body.split("</tr>").map(|row| row.split("</td>").collect()).collect();
        (classes.split(' ').collect(), heads, rows)
    })
}

/// Fails if a table hides the column of an action; counts the actions otherwise.
pub(crate) fn actions_stand_on_every_screen(html: &str) -> usize {
    let mut found = 0;
    for (classes, heads, rows) in tables(html) {
        for (column, cell) in rows.iter().flat_map(|row| row.iter().enumerate()) {
            if cell.contains("class=\"act\"") {
                found += 1;
                let own = format!("l{}", column + 1);
                assert!(classes.contains(&own.as_str()), "{heads:?} {classes:?}: {cell}");
            }
        }
    }
    found
}

/// Class of the column under this head, in the first table that has it.
fn class_of(html: &str, head: &str) -> String {
    let found = tables(html).find_map(|(classes, heads, _rows)| {
        let column = heads.iter().position(|it| it.starts_with(head))? + 1;
        let is_own = |class: &&&str| class[1..] == column.to_string();
        Some(classes.iter().find(is_own).map_or(String::new(), |class| class[..1].to_owned()))
    });
    found.unwrap_or_else(|| panic!("no {head}: {html}"))
}

#[tokio::test]
async fn a_delivery_is_sent_again_on_every_screen() {
    let world = OpsWorld::new().await;
    let opened = world.get(&owner(), "/webhooks/new").await.location.unwrap();
    let fields = [("url", "https://hooks.example.com/in"), ("kinds", "wallet.low")];
    let made = world.post(&owner(), &opened, &fields).await.html;
    let (_, rest) = made.split_once("href=\"/webhooks/").unwrap();
    let base = format!("/webhooks/{}", &rest[..36]);
    let opened = world.get(&owner(), &format!("{base}/test")).await.location.unwrap();
    assert_eq!(world.post(&owner(), &opened, &[]).await.status, 303);
    let page = world.page(&owner(), &base).await;
    assert_eq!(actions_stand_on_every_screen(&page), 1, "{page}");
    assert_eq!(class_of(&page, "Last answer"), "l");
}

#[tokio::test]
async fn money_and_the_columns_that_a_page_keeps_stand_on_every_screen() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 947_980_000).await.wallet.id;
    let key = world.api_key(wallet, "production").await;
    world.completed(&key, 20).await;
    for (page, head, class) in [
        ("/usage?by=day".to_owned(), "Charge", "a"),
        (format!("/wallets/{wallet}/statement"), "Amount, USD", "a"),
        (format!("/wallets/{wallet}/statement"), "What", "l"),
        (format!("/wallets/{wallet}/statement"), "Balance, USD", "l"),
        (format!("/wallets/{wallet}/statement?view=journal"), "Available", "a"),
        ("/routes".to_owned(), "Failing since", "l"),
        ("/routes".to_owned(), "Last error", "l"),
    ] {
        let html = world.get(&world.owner, &page).await;
        assert_eq!(class_of(&html.is(200).body, head), class, "{page} {head}");
    }
}

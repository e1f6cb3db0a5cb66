//! Brand: the operator's name, logo and links on holders' pages, and on no other.

use bytes::Bytes;
use holdfast_domain::admin::{Reach, Role};

use super::site::{Call, EMAIL, PASSWORD, World, shared_options, sign_in};
use crate::console::Console;
use crate::kit::{Brand, ConsoleOptions, Logo};

const LOGO: &[u8] = b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>";

#[tokio::test]
async fn holders_see_the_operators_brand_and_operators_do_not() {
    let world = World::owned().await;
    let brand = Brand {
        name: Some("Acme <AI>".to_owned()),
        logo: Some(Logo { media_type: "image/svg+xml", bytes: Bytes::from_static(LOGO) }),
        support_url: Some("https://help.example.com/?a=1&b=2".to_owned()),
        top_up_url: Some("https://pay.example.com".to_owned()),
    };
    let console =
        Console::new(world.accounts.clone(), ConsoleOptions { brand, ..shared_options() });
    let from = std::net::IpAddr::from([192, 0, 2, 7]);
    let send = async |call: Call| World::answer_of(&console, from, call).await;
    let local = holdfast_accounts::Principal::local();
    let new = holdfast_accounts::NewWallet {
        name: "acme".parse().unwrap(),
        currency: holdfast_domain::Currency::USD,
        settings: holdfast_domain::admin::WalletPatch::default(),
    };
    let made = world.accounts.create_wallet(&local, &super::world::request(), &new).await;
    let wallet = made.unwrap().thing.wallet.id;
    let holder = "grace@example.com";
    let token = world.invite(holder, Role::HolderViewer, Reach::Wallet(wallet)).await;
    world.accounts.accept_link(&token, Some(&PASSWORD.parse().unwrap()), None).await.unwrap();
    let marks = ["Acme &#60;AI&#62;", "/assets/logo", ">Support<", ">Top up<"];
    for (email, is_holder) in [(holder, true), (EMAIL, false)] {
        let cookies = send(sign_in(email, PASSWORD)).await.cookies();
        let page = send(Call::get("/usage").cookies(&cookies)).await;
        assert_eq!(page.status, 200, "{page:?}");
        for mark in marks {
            assert_eq!(page.text.contains(mark), is_holder, "{email} {mark}: {}", page.text);
        }
        assert_eq!(page.text.contains("<bdi>Holdfast</bdi>"), !is_holder);
    }
    let logo = send(Call::get("/assets/logo")).await;
    assert_eq!((logo.status, logo.header("content-type")), (200, Some("image/svg+xml")));
    let policy = logo.header("content-security-policy").unwrap();
    assert!(policy.contains("sandbox") && !policy.contains("script"), "{policy}");
    assert_eq!(logo.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(world.send(Call::get("/assets/logo")).await.status, 404, "there is none");
}

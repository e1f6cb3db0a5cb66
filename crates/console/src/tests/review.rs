//! The review of a form that moves money: an address of its own, which *back* and a reload may ask for, and which
//! fills in nothing for whoever was led there from elsewhere.

use holdfast_accounts::{NewWallet, Principal};
use holdfast_domain::Currency;
use holdfast_domain::admin::WalletPatch;

use super::site::{Call, EMAIL, PASSWORD, Reply, World};
use super::world::request;

const KEY: &str = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
const NOTHING_YET: &str = "nothing has been done yet";

/// An owner at the form of a deposit.
struct Depositor {
    world: World,
    cookies: String,
    form: String,
}

impl Depositor {
    async fn new() -> Self {
        let world = World::owned().await;
        let new = NewWallet {
            name: "acme".parse().unwrap(),
            currency: Currency::USD,
            settings: WalletPatch::default(),
        };
        let made = world.accounts.create_wallet(&Principal::local(), &request(), &new).await;
        let form = format!("/wallets/{}/deposit?key={KEY}", made.unwrap().thing.wallet.id);
        Self { cookies: world.cookies().await, world, form }
    }

    async fn send(&self, call: Call) -> Reply {
        self.world.send(call.cookies(&self.cookies)).await
    }

    /// Sends the form, and tells where its review is.
    async fn review(&self) -> String {
        let sent = self.send(Call::post(&self.form, &[("amount", "25"), ("note", "A & B")])).await;
        assert_eq!(sent.status, 303, "{sent:?}");
        sent.location().to_owned()
    }

    async fn own(&self, address: &str) -> Reply {
        let reply = self.send(Call::get(address).header("sec-fetch-site", "same-origin")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply
    }
}

#[tokio::test]
async fn a_review_has_an_address_that_says_what_was_done_once_it_is_done() {
    let depositor = Depositor::new().await;
    let review = depositor.review().await;
    for _reload in 0..2 {
        let shown = depositor.own(&review).await.text;
        assert!(shown.contains(NOTHING_YET) && shown.contains("25.00 USD"), "{shown}");
        assert!(shown.contains("A &#38; B") && !shown.contains("A & B"), "{shown}");
        let action = depositor.form.replace('&', "&#38;");
        assert!(
            shown.contains(&format!("action=\"{action}\"")),
            "its button sends the form: {shown}"
        );
    }
    let fields = [("amount", "25"), ("note", "A & B"), ("confirm", "yes")];
    let done = depositor.send(Call::post(&depositor.form, &fields)).await;
    assert_eq!((done.status, done.location()), (303, depositor.form.as_str()));
    for address in [&review, &depositor.form] {
        assert!(depositor.own(address).await.text.contains("This form was sent"), "{address}");
    }
}

#[tokio::test]
async fn a_link_from_elsewhere_fills_in_no_review() {
    let depositor = Depositor::new().await;
    let review = depositor.review().await;
    for from in ["cross-site", "same-site", "none"] {
        let led = depositor.send(Call::get(&review).header("sec-fetch-site", from)).await;
        assert_eq!(led.status, 200, "{from}");
        assert!(!led.text.contains(NOTHING_YET) && !led.text.contains("value=\"25"), "{from}");
    }
    let silent = depositor.send(Call::get(&review)).await;
    assert!(!silent.text.contains(NOTHING_YET), "nor where a browser does not say");
}

#[tokio::test]
async fn a_sign_in_on_the_way_leads_to_the_form_without_its_review() {
    let depositor = Depositor::new().await;
    let review = depositor.review().await;
    let led = depositor.world.send(Call::get(&review)).await;
    let fields = [("email", EMAIL), ("password", PASSWORD)];
    let sent = depositor.world.send(Call::post(led.location(), &fields)).await;
    assert_eq!((sent.status, sent.location()), (303, depositor.form.as_str()));
}

#[tokio::test]
async fn a_browser_that_does_not_say_what_led_it_gets_the_review_at_once() {
    let depositor = Depositor::new().await;
    let fields = [("amount", "25")];
    let sent = Call::post(&depositor.form, &fields).without("sec-fetch-site");
    let sent = depositor.send(sent.header("origin", "http://localhost:8081")).await;
    assert!(sent.status == 200 && sent.text.contains(NOTHING_YET), "{sent:?}");
    let long = "x".repeat(3_000);
    let long =
        depositor.send(Call::post(&depositor.form, &[("amount", "25"), ("other", &long)])).await;
    assert!(long.status == 303 && long.location().len() < 4_096, "{long:?}");
    let longer = "x".repeat(5_000);
    let longer = [("amount", "25"), ("other", longer.as_str())];
    let longer = depositor.send(Call::post(&depositor.form, &longer)).await;
    assert!(longer.status == 200 && longer.text.contains(NOTHING_YET), "too long for an address");
}

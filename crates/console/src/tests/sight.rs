//! What each role sees and may do: no link to what it may not do, and nothing of another wallet.

use holdfast_domain::admin::{Role, UseCase};

use super::world::{ROUTE, World, visitor_of};

/// Forms of a wallet, an API key and an operation, with their use cases.
const OF_WALLET: [(&str, UseCase); 5] = [
    ("deposit", UseCase::PostingDeposit),
    ("adjust", UseCase::PostingAdjust),
    ("edit", UseCase::WalletUpdate),
    ("suspend", UseCase::WalletSuspend),
    ("close", UseCase::WalletClose),
];
const OF_KEY: [(&str, UseCase); 4] = [
    ("edit", UseCase::ApiKeyUpdate),
    ("suspend", UseCase::ApiKeySuspend),
    ("rotate", UseCase::ApiKeyRotate),
    ("revoke", UseCase::ApiKeyRevoke),
];

#[tokio::test]
async fn a_role_has_links_to_what_it_may_do_and_is_refused_the_rest() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let key = world.api_key(wallet.wallet.id, "prod").await;
    let operation = world.completed(&key, 20).await;
    let wallet_page = format!("/wallets/{}", wallet.wallet.id);
    let key_page = format!("/keys/{}", key.id);
    for role in Role::ALL {
        let visitor = visitor_of(role, wallet.wallet.id);
        let mut forms = vec![
            ("/wallets".to_owned(), "/wallets/new".to_owned(), UseCase::WalletCreate),
            ("/keys".to_owned(), "/keys/new".to_owned(), UseCase::ApiKeyIssue),
        ];
        let of_wallet = OF_WALLET.map(|(verb, use_case)| (wallet_page.clone(), verb, use_case));
        let of_key = OF_KEY.map(|(verb, use_case)| (key_page.clone(), verb, use_case));
        for (page, verb, use_case) in of_wallet.into_iter().chain(of_key) {
            forms.push((page.clone(), format!("{page}/{verb}"), use_case));
        }
        for (page, form, use_case) in forms {
            let links = world.get(&visitor, &page).await.is(200).links();
            assert_eq!(links.contains(&form), role.may(use_case), "{role}: {form} on {page}");
            let status = if role.may(use_case) { 303 } else { 403 };
            world.get(&visitor, &form).await.is(status);
            if !role.may(use_case) {
                let address = format!("{form}?key={}", uuid::Uuid::new_v4());
                let fields = [("amount", "1"), ("reason", "x"), ("name", "x")];
                world.confirm(&visitor, &address, &fields).await.is(403).has(use_case.label());
            }
        }
        let refund = format!("/operations/{}/refund", operation.id);
        let status = if role.may(UseCase::PostingRefund) { 303 } else { 403 };
        world.get(&visitor, &refund).await.is(status);
    }
    assert_eq!(world.record(wallet.wallet.id).await.edited, 0);
}

#[tokio::test]
async fn navigation_has_the_groups_of_an_operator_and_the_words_of_a_holder() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await.wallet.id;
    let key = world.api_key(wallet, "prod").await;
    let operation = world.completed(&key, 20).await.id;
    let page = format!("/operations/{operation}");
    let navigation = |html: &str| {
        let shown = html.split_once("class=\"sidebar\"").unwrap().1.split_once("</nav>").unwrap().0;
        let words = shown.split(['<', '>']).skip(1).step_by(2).map(str::trim);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let seen_by = async |role| {
        let shown = world.get(&visitor_of(role, wallet), &page).await;
        shown.is(200).has("<a href=\"/operations\"><bdi>Requests</bdi></a>");
        let marked = "<a href=\"/operations\" aria-current=\"page\">Requests</a>";
        assert_eq!(shown.body.matches(marked).count(), 2, "in the sidebar and in the menu");
        navigation(&shown.body)
    };
    assert_eq!(
        seen_by(Role::Owner).await,
        "Home Customers Wallets API keys Payments Activity Requests Usage Events Models Catalogue Routes \
         Playground Settings People Admin keys Webhooks Audit log Ledger checks"
    );
    let finance = seen_by(Role::Finance).await;
    assert!(finance.ends_with("Playground Settings Ledger checks"), "{finance}");
    assert_eq!(
        seen_by(Role::HolderAdmin).await,
        "Home Requests Usage API keys Models Payments Playground Team Webhooks Events"
    );
    assert_eq!(
        seen_by(Role::HolderViewer).await,
        "Home Requests Usage API keys Models Payments Playground Events"
    );
    let people = world.get(&visitor_of(Role::HolderAdmin, wallet), "/people").await;
    people.is(200).has("<h1>Team</h1>");
    world.get(&world.owner, "/models").await.is(200).has("<h1>Catalogue</h1>");
}

#[tokio::test]
async fn nothing_of_another_wallet_exists_for_a_holder() {
    let world = World::new().await;
    let (own, other) = (world.wallet("own", 1_000).await, world.wallet("secret-name", 1_000).await);
    let key = world.api_key(other.wallet.id, "secret-key").await;
    world.completed(&key, 20).await;
    let (wallet, key_page) = (format!("/wallets/{}", other.wallet.id), format!("/keys/{}", key.id));
    let shown = world.get(&world.owner, &wallet).await;
    let posting = shown.links().into_iter().find(|link| link.starts_with("/postings/")).unwrap();
    for role in [Role::HolderAdmin, Role::HolderDeveloper, Role::HolderViewer] {
        let visitor = visitor_of(role, own.wallet.id);
        let files = ["", "/statement", "/statement.csv"];
        let mut paths: Vec<_> = files.iter().map(|file| format!("{wallet}{file}")).collect();
        let payments = ["", "&kind=deposit", "&kind=adjustment", "&kind=refund"];
        let payments = payments.map(|kind| format!("/payments?wallet={}{kind}", other.wallet.id));
        paths.extend(payments);
        paths.extend([key_page.clone(), posting.clone()]);
        for path in paths {
            world.get(&visitor, &path).await.is(404).has_not("secret");
        }
        for verb in ["edit", "rotate", "revoke"] {
            let path = format!("{key_page}/{verb}?key={}", uuid::Uuid::new_v4());
            if role != Role::HolderViewer {
                world.get(&visitor, &path).await.is(404).has_not("secret-key");
                world.confirm(&visitor, &path, &[("reason", "x")]).await.is(404);
            }
        }
        if role != Role::HolderViewer {
            let path = format!("/keys/new?wallet={}&key={}", other.wallet.id, uuid::Uuid::new_v4());
            world.get(&visitor, &path).await.is(404).has_not("secret-name");
        }
        for list in ["/wallets", "/keys", "/wallets?name=secret-name", "/keys?name=secret-key"] {
            let listed = world.get(&visitor, list).await;
            listed.is(200).has_not(">secret").has_not(&other.wallet.id.to_string());
        }
        let listed = world.get(&visitor, &format!("/keys?wallet={}", other.wallet.id)).await;
        listed.is(422).has_not("secret");
        let own_page = world.get(&visitor, &format!("/wallets/{}", own.wallet.id)).await;
        own_page.is(200).has("own").has_not("secret").has_not(ROUTE);
    }
}

#[tokio::test]
async fn holders_and_support_see_no_exposure() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let key = world.api_key(wallet.wallet.id, "prod").await;
    world.completed(&key, 20).await;
    let page = format!("/keys/{}", key.id);
    for role in Role::ALL {
        let shown = world.get(&visitor_of(role, wallet.wallet.id), &page).await;
        let sees = !role.is_holder() && role != Role::Support;
        assert_eq!(shown.is(200).body.contains("At risk"), sees, "{role}");
        shown.has_not(ROUTE).has_not("sim/sample");
    }
}

#[tokio::test]
async fn no_text_that_somebody_chose_is_markup() {
    let world = World::new().await;
    let evil = "<script>x</script>\"'&";
    let wallet = world.wallet(evil, 1_000).await;
    let key = world.api_key(wallet.wallet.id, evil).await;
    world.running(&key).await;
    let page = format!("/wallets/{}", wallet.wallet.id);
    let address = world.open(&world.owner, &format!("{page}/adjust")).await;
    let fields = [("amount", "-0.000001"), ("reason", evil), ("note", evil)];
    world.send(&world.owner, &address, &fields).await.is(200).has_not("<script>x");
    world.confirm(&world.owner, &address, &fields).await.is(303);
    let done = world.get(&world.owner, &address).await;
    let posting = done.links().into_iter().find(|link| link.starts_with("/postings/")).unwrap();
    let search = "/wallets?name=%3Cscript%3Ex%3C/script%3E%22%27%26";
    let mut paths = vec!["/wallets".to_owned(), "/keys".to_owned(), search.to_owned(), posting];
    paths.extend([page.clone(), format!("/payments?wallet={}", wallet.wallet.id)]);
    paths.extend([format!("/keys/{}", key.id), format!("/keys?wallet={}", wallet.wallet.id)]);
    for form in ["edit", "suspend", "deposit", "adjust", "close"] {
        paths.push(world.open(&world.owner, &format!("{page}/{form}")).await);
    }
    for form in ["edit", "suspend", "rotate", "revoke"] {
        paths.push(world.open(&world.owner, &format!("/keys/{}/{form}", key.id)).await);
    }
    for path in paths {
        let shown = world.get(&world.owner, &path).await;
        shown.is(200).has("&#60;script&#62;x").has_not("<script>x");
    }
}

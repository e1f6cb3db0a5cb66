//! Sells thumbnails at a fifth of a cent: one key, one run, one charge, killed and started again at any
//! moment. `cargo run -- sqlite://shop.db PICTURE`

use holdfast_domain::{CommandKey, Currency, Micros, credential::Grant, usage::Meters};
use holdfast_embed::{DatabaseUrl, Holdfast, Price, SaleKey, ServerSecret, Work};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (database, picture) = (argument(1)?, argument(2)?);
    let secret = ServerSecret::new(b"the same at every start, and not in the source")?;
    let shop = Holdfast::open(&DatabaseUrl::parse(&database)?, secret).await?;
    // A customer with a key and ten dollars: each once for its request key, however often this starts.
    let [make, issue, pay] = [1, 2, 3].map(CommandKey::from_u128);
    let wallet = shop.create_wallet(make, "acme", Currency::USD).await?;
    let api_key = shop.issue_key(issue, wallet, "main", Grant::default()).await?.id;
    shop.deposit(pay, wallet, "10.00".parse()?).await?;

    let cents = Micros::new(2_000);
    let price = Price::each("shop/thumbnail", Currency::USD, "2026-11-01T00:00:00Z", cents)?;
    let key = SaleKey { api_key, request_key: "5f0c4a4e-3f9b-4c1d-9f43-0a8f3a1f6c11".parse()? };
    let request = picture.clone();
    // Called at most once, after the hold was committed.
    let work = || async {
        println!("at work");
        match tokio::task::spawn_blocking(|| std::fs::read(picture)).await {
            Ok(Ok(pixels)) => Work::Done { meters: Meters::thing(), answer: small(&pixels) },
            Ok(Err(_unread)) => Work::NotRun,
            Err(_panicked) => Work::Unknown,
        }
    };
    println!("{:?}", shop.sell(key, request.as_bytes(), &price, cents, work).await?);
    Ok(shop.close().await?)
}

fn small(pixels: &[u8]) -> Vec<u8> {
    pixels.iter().step_by(64).copied().collect()
}

fn argument(n: usize) -> Result<String, &'static str> {
    std::env::args().nth(n).ok_or("name a database and a picture: sqlite://shop.db cat.png")
}

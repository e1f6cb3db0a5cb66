//! Price versions, kept for ever.

use holdfast_domain::ports::PinError;
use holdfast_domain::price::PriceVersion;
use holdfast_domain::usage::MeterKind;
use sqlx::postgres::PgConnection;

use super::Postgres;
use super::batch::price_version;
use super::error::is_taken;
use crate::rows::tariff;

const FIND: &str = "SELECT price_version, currency, input, cached_input, cache_write,
    audio_input, output, reasoning, audio_output, request, image, tiers
    FROM prices WHERE price_version = $1";
const INSERT: &str =
    "INSERT INTO prices (price_version, currency, input, cached_input, cache_write,
    audio_input, output, reasoning, audio_output, request, image, tiers)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

/// Attempts to look versions up again after another process was faster.
const TRIES: u32 = 3;

impl Postgres {
    pub(crate) async fn pin(&self, versions: &[PriceVersion]) -> Result<(), PinError> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let versions = versions.to_vec();
            let pinned = self.errands.write(move |connection, _now| {
                Box::pin(async move { pin(connection, versions).await })
            });
            match pinned.await {
                Ok(None) => return Ok(()),
                Ok(Some(other)) => return Err(PinError::Conflict(other.id)),
                // Another process has pinned it meanwhile: with these numbers, or with others.
                Err(error) if is_taken(&error) && tries > 0 => {}
                Err(error) => return Err(PinError::Unavailable(Box::new(error))),
            }
        }
    }
}

/// The known version that one of these contradicts, if there is one; else all are known.
async fn pin(
    connection: &mut PgConnection,
    versions: Vec<PriceVersion>,
) -> Result<Option<PriceVersion>, sqlx::Error> {
    let mut unknown: Vec<PriceVersion> = Vec::new();
    for version in versions {
        let row =
            sqlx::query(FIND).bind(version.id.as_str()).fetch_optional(&mut *connection).await?;
        let stored = row.map(price_version).transpose()?;
        // Twice in one configuration: the first is not in the table yet, and the second must not differ.
        let named = unknown.iter().find(|other| other.id == version.id);
        match stored.as_ref().or(named) {
            Some(known) if *known == version => {}
            Some(_) => return Ok(Some(version)),
            None => unknown.push(version),
        }
    }
    for version in unknown {
        let mut query = sqlx::query(INSERT)
            .bind(version.id.as_str().to_owned())
            .bind(version.currency.as_str().to_owned());
        for kind in MeterKind::ALL {
            query =
                query.bind(i64::try_from(version.tariff.rates().rate(kind)).unwrap_or(i64::MAX));
        }
        query.bind(tariff::tiers_text(&version.tariff)).execute(&mut *connection).await?;
    }
    Ok(None)
}

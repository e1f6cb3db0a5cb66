//! API keys beside the trail: what was last said of a key's wallet, limits, models and ends is what its row
//! says. Nothing else in the book says it a second time, and a limit that was lifted by hand spends money.
//!
//! Only fields that the trail tells of are compared: a key that is older than the trail has others.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use holdfast_domain::ApiKeyId;
use holdfast_domain::account::Thing;
use holdfast_domain::audit::TrailRow;
use holdfast_domain::credential::ApiKey;

use crate::errand::trail::{self, ROW};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{self, API_KEY, Cells};
use crate::verify::{Subject, Verification};

/// API keys whose rows of the trail are read at once.
pub(super) const KEYS: usize = 200;

/// The last values of a key's fields, by the trail, each with the number of its row.
type Terms = BTreeMap<String, (Option<String>, u64)>;

/// Compares the keys with these numbers. CROSS JOIN: SQLite takes the tables in this order then, and finds
/// the rows of each key together.
pub(super) async fn check(
    db: &ReadTransaction,
    keys: RangeInclusive<i64>,
    found: &mut Verification,
) -> Result<(), ReadError> {
    let [first, last] = [*keys.start(), *keys.end()];
    let told = format!(
        "SELECT {ROW} FROM api_keys AS k CROSS JOIN audit AS a
         WHERE k.seq >= $1 AND k.seq <= $2 AND a.thing_id = k.id AND a.thing_kind = 'api_key'
         ORDER BY a.seq"
    );
    let mut terms: BTreeMap<ApiKeyId, Terms> = BTreeMap::new();
    for row in db.query(&told, [first.into(), last.into()]).await? {
        // A row that cannot be read is reported with the trail.
        let Ok(row) = trail::row(&mut Cells::new(&row)) else { continue };
        if let Thing::ApiKey(id) = row.thing {
            add(terms.entry(id).or_default(), row);
        }
    }
    let sql = format!(
        "SELECT {API_KEY} FROM api_keys AS k WHERE k.seq >= $1 AND k.seq <= $2 ORDER BY k.seq"
    );
    for row in db.query(&sql, [first.into(), last.into()]).await? {
        match rows::api_key(&mut Cells::new(&row)) {
            Ok(key) => compare(&key, terms.get(&key.id), found),
            Err(error) => {
                let id = super::id(&row, 0, ApiKeyId::from_bytes)?;
                found.unreadable(Subject::ApiKey(id), &error);
            }
        }
    }
    Ok(())
}

fn add(terms: &mut Terms, row: TrailRow) {
    for change in row.changes {
        terms.insert(change.field, (change.after, row.seq));
    }
}

fn compare(key: &ApiKey, terms: Option<&Terms>, found: &mut Verification) {
    let Some(terms) = terms else { return };
    for (field, value) in key.trail_fields() {
        let Some((told, seq)) = terms.get(field) else { continue };
        if *told != value {
            let [value, told] =
                [&value, told].map(|value| value.as_deref().unwrap_or("nothing").to_owned());
            let sentence = format!("its {field} is {value}, row {seq} of the trail says {told}");
            found.report(Subject::ApiKey(key.id), sentence);
        }
    }
}

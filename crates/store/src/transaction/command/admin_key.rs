//! Admin keys and their credentials as rows.

use holdfast_domain::admin::{AdminCredential, AdminKey, KnownAdminCredential, Reach};
use holdfast_domain::secret::{ServerSecretId, Verifier};
use holdfast_domain::{AdminKeyId, CredentialId};

use crate::rows::{BadRow, Cells, FromCells, Row};
use crate::schema::Dialect;

pub(crate) const INSERT_CREDENTIAL: &str = "INSERT INTO admin_credentials (id, admin_key_id,
    verifier, server_secret, created_at, ends_at) VALUES ($1, $2, $3, $4, $5, $6)";
pub(crate) const END_CREDENTIALS: &str = "UPDATE admin_credentials SET ends_at = $2
    WHERE admin_key_id = $1 AND (ends_at IS NULL OR ends_at > $2)";

/// Statement whose row [`known`] reads, by the id of a credential.
pub(crate) fn known_statement(dialect: Dialect) -> String {
    format!(
        "SELECT {}, c.id, c.admin_key_id, c.verifier, c.server_secret, c.ends_at, {}
         FROM admin_credentials AS c JOIN admin_keys AS a ON a.id = c.admin_key_id
         WHERE c.id = $1",
        dialect.clock(),
        AdminKey::COLUMNS
    )
}

pub(crate) fn known(cells: &mut Cells<'_>) -> Result<KnownAdminCredential, BadRow> {
    let now = cells.timestamp()?;
    let credential = AdminCredential {
        id: CredentialId::from_bytes(cells.bytes()?),
        admin_key: AdminKeyId::from_bytes(cells.bytes()?),
        verifier: Verifier::from_bytes(cells.bytes()?),
        server_secret: ServerSecretId::from_bytes(cells.bytes()?),
        ends_at: cells.opt_timestamp()?,
    };
    Ok(KnownAdminCredential { credential, admin_key: FromCells::from_cells(cells)?, now })
}

/// Wallet of a reach, as its column holds it.
pub(crate) fn wallet_of(reach: Reach) -> Option<Vec<u8>> {
    match reach {
        Reach::All => None,
        Reach::Wallet(wallet) => Some(wallet.to_bytes().to_vec()),
    }
}

//! Arguments of `holdfast receipt`. They name files: no configuration, server or key is read.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum Receipt {
    /// Verify a signed receipt, or a signed root of the ledger, with public keys, offline; exit status 1 if it is not
    /// genuine
    ///
    /// The keys have to come from the gateway itself, over HTTPS: a forger of a receipt can forge keys as well. The
    /// charge is computed again from the price lines.
    Verify {
        /// Receipt or root, as `GET /v1/operations/{idempotency-key}/receipt` answers it
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Proof that the operation is in a root of the ledger, as `operation proof --json` prints it
        #[arg(long, value_name = "FILE")]
        proof: Option<PathBuf>,
        /// Public keys, as `GET /v1/receipts/keys` answers them
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
    },
}

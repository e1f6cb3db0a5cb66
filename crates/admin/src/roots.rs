//! `/receipts/roots` and `/operations/{id}/proof`: signed roots of the ledger, and proofs that an operation is in one.
//!
//! Documents are shown as they were signed: amounts and counts are texts, as in receipts, and their canonical form is
//! what the signature is of.

use holdfast_domain::ErrorChain;
use holdfast_domain::admin::ledger_root::{InclusionProof, LedgerRoot};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, Reply};
use crate::description::{Errors, OperationPath};
use crate::error::{Code, Problem};
use crate::page::{List, ListPages, ListParams, NoFilters, PageQuery};
use crate::request::Caller;

/// Root of the ledger with its signature, as `holdfast receipt verify` takes it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = LedgerRoot)]
pub(crate) struct SignedRootView {
    root: RootView,
    signature: SignatureView,
}

/// Root of the ledger: a hash of every operation that ended, and of every posting, since the root before it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = LedgerRootDocument)]
struct RootView {
    /// Number, from one.
    number: String,
    /// Moment at which the root before it ended; null for the first.
    from: Option<String>,
    /// Moment before which its rows were created.
    to: String,
    /// Number of leaves.
    leaves: String,
    /// Root of the tree (RFC 6962).
    root: String,
    /// Hash of the root before it; null for the first.
    previous: Option<String>,
    signed_at: String,
}

/// Signature over the canonical form (RFC 8785) of a document.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = DocumentSignature)]
struct SignatureView {
    /// `Ed25519`.
    algorithm: String,
    /// Key of `GET /v1/receipts/keys`.
    key_id: String,
    /// Hexadecimal digits.
    value: String,
}

/// Root of the ledger, with the proof that an operation is in it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InclusionProof)]
pub(crate) struct ProofView {
    root: RootView,
    signature: SignatureView,
    proof: PathView,
}

/// Way from the leaf of an operation to the root.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InclusionPath)]
struct PathView {
    #[schema(format = "uuid")]
    operation_id: String,
    /// Place of the leaf, from zero.
    index: String,
    /// Hashes beside the way, the nearest to the leaf first.
    path: Vec<String>,
}

impl SignedRootView {
    fn new(root: &LedgerRoot) -> Result<Self, Problem> {
        serde_json::from_str(&root.signed).map_err(|error| {
            let error = ErrorChain(&error);
            tracing::error!(%error, root = root.number, "a root of the ledger cannot be read");
            Problem::new(Code::InternalError)
        })
    }
}

impl ProofView {
    fn new(proof: &InclusionProof) -> Result<Self, Problem> {
        let SignedRootView { root, signature } = SignedRootView::new(&proof.root)?;
        let digits = |hash: &[u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let proof = PathView {
            operation_id: proof.operation.to_string(),
            index: proof.index.to_string(),
            path: proof.path.iter().map(digits).collect(),
        };
        Ok(Self { root, signature, proof })
    }
}

#[utoipa::path(
    get, path = "/receipts/roots", operation_id = "list_roots", tag = "receipts", params(PageQuery),
    responses((status = 200, description = "A page.", body = List<SignedRootView>), Errors)
)]
/// Lists the signed roots of the ledger.
pub(crate) async fn list(
    caller: Caller,
    ListParams(NoFilters {}, page): ListParams<NoFilters>,
) -> Reply<List<SignedRootView>> {
    let list = ListPages::new(&caller, "roots", &())?;
    let page = list.request(&page)?;
    let found = caller.accounts().ledger_roots(&caller.principal, page).await?;
    let views = found.rows.iter().map(SignedRootView::new).collect::<Result<Vec<_>, _>>()?;
    list.list(found.with_rows(views)).await
}

#[utoipa::path(
    get, path = "/operations/{id}/proof", operation_id = "prove_operation", tag = "receipts",
    params(OperationPath),
    responses((status = 200, description = "The proof.", body = ProofView), Errors)
)]
/// Proves that an operation is in a signed root of the ledger; 404 until the root of its day is signed.
pub(crate) async fn prove(caller: Caller) -> Reply<ProofView> {
    let _place = caller.gate.begin_report(&caller.principal)?;
    let proof = caller.accounts().inclusion_proof(&caller.principal, caller.id()?).await?;
    Ok(Answer::of(ProofView::new(&proof)?))
}

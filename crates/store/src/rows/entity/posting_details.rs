//! `posting_details`: source, external reference, reason and note of postings.

use holdfast_domain::PostingId;
use holdfast_domain::admin::{DepositReference, PostingDetails};

/// Details, and the posting that they are of.
pub(crate) type DetailsRow = (PostingId, PostingDetails);

row! {
    "posting_details" as "d", row: DetailsRow;
    listed {}
    made {
        #[sea_orm(primary_key, auto_increment = false)] posting_id: PostingId = row.0,
        source: Option<String> = row.1.reference.as_ref().map(|it| it.source.clone()),
        external_reference: Option<String> =
            row.1.reference.as_ref().map(|it| it.external_reference.clone()),
        reason: Option<String> = row.1.reason,
        note: Option<String> = row.1.note,
    }
    set {}
    {
        let reference = source.zip(external_reference);
        let reference = reference.map(|(source, it)| DepositReference::booked(source, it));
        (posting_id, PostingDetails { reference, reason, note })
    }
}

/// Reads a row of an outer join; none for a posting without details.
pub(crate) fn joined(cells: &mut Cells<'_>) -> Result<Option<PostingDetails>, BadRow> {
    if cells.is_absent()? {
        cells.skip(5);
        return Ok(None);
    }
    DetailsRow::from_cells(cells).map(|(_posting, details)| Some(details))
}

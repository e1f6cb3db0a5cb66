//! Keys of `[[models]]` that stand below one of the model's tables. TOML has one trap that many fall
//! into: a key below `[models.timeout]` belongs to that table, though it was meant for the model.
//! Such keys are refused by name, with the advice to move them up.

use crate::document::ConfigTable;

/// Keys of a model itself. They must stand above the model's tables: TOML gives a key to the table
/// that was opened last.
const OWN_KEYS: [&str; 12] = [
    "id",
    "contract",
    "context_tokens",
    "max_output_tokens",
    "guarantee",
    "timeout",
    "body_bytes",
    "prompt_tokens_per_byte",
    "prompt_overhead_tokens",
    "image_tokens",
    "accepts",
    "allow",
];

/// Refuses what was meant for the model above.
pub(crate) fn refuse_misplaced(table: &ConfigTable<'_>) {
    // Before the table refuses what it does not know: a key is refused once, for the better reason.
    for key in OWN_KEYS {
        table.refuse(
            key,
            "belongs to [[models]], but is below a table of the model and is read as that table's: \
             move it up, right below [[models]]",
        );
    }
}

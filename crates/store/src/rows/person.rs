//! People, their grants, links, sessions and browsers as rows.

use holdfast_domain::admin::{
    Authority, BrowserMark, EmailAddress, KnownPassword, LinkPurpose, PasswordHash, PersonLink,
    Reach, Session,
};
use holdfast_domain::private::Private;
use holdfast_domain::{BrowserMarkId, LinkId, PersonId, SessionId};
use sea_orm::Value;

use super::{BadRow, Cells};

/// The tables whose rows [`link`] reads: the links of operators, and of a version before all others too, and those of
/// wallets.
pub(crate) const LINK_TABLES: [&str; 2] = ["person_links", "person_wallet_links"];
/// The columns that [`link`] reads, of one of [`LINK_TABLES`] `AS l`.
pub(crate) const LINK: &str = "l.id, l.person_id, l.purpose, l.role, l.wallet_id, l.expires_at, \
    l.used_at, l.created_by";
/// The columns that [`session`] reads, of `sessions AS s`.
pub(crate) const SESSION: &str = "s.id, s.person_id, s.role, s.wallet_id, s.created_at, \
    s.last_seen_at, s.signed_in_at, s.address";
/// The columns that [`password`] reads, of `person_passwords AS w`.
pub(crate) const PASSWORD: &str = "w.person_id, w.hash, w.set_at";
/// The columns that [`browser_mark`] reads, of `browser_marks AS b`.
pub(crate) const BROWSER_MARK: &str = "b.id, b.person_id, b.created_at, b.used_at, b.address";

/// Condition that finds the person who has an address and has not ended, over `people AS p`. Rows of
/// before may have two spellings of one address: the one that was typed comes first.
pub(crate) fn of_email(email: &EmailAddress) -> (String, Vec<Value>) {
    let spellings = email.spellings();
    let places: Vec<_> = (1..=spellings.len()).map(|place| format!("${place}")).collect();
    let ranks: Vec<_> = (1..=places.len()).map(|at| format!("WHEN ${at} THEN {at}")).collect();
    let condition = format!(
        "p.id = (SELECT e.id FROM people AS e WHERE e.email IN ({}) AND e.ended_at IS NULL
            ORDER BY CASE e.email {} END, e.id LIMIT 1)",
        places.join(", "),
        ranks.join(" "),
    );
    (condition, spellings.into_iter().map(Value::from).collect())
}

/// Reads a role and its wallet.
pub(crate) fn authority(cells: &mut Cells<'_>) -> Result<Authority, BadRow> {
    Ok(Authority { role: cells.get()?, reach: cells.get()? })
}

/// Reads [`LINK`].
pub(crate) fn link(cells: &mut Cells<'_>) -> Result<PersonLink, BadRow> {
    let id = LinkId::from_bytes(cells.bytes()?);
    let person = PersonId::from_bytes(cells.bytes()?);
    let purpose = cells.text()?;
    let role = cells.get()?;
    // Its own column, and its meaning together with the two before.
    let reach = cells.get()?;
    let purpose = match (purpose.as_str(), role, reach) {
        ("accept", Some(role), reach) => LinkPurpose::Accept(Authority { role, reach }),
        ("set_password", None, _) => LinkPurpose::SetPassword,
        ("first_owner", None, Reach::All) => LinkPurpose::FirstOwner,
        _ => return Err(BadRow::Value(2)),
    };
    Ok(PersonLink {
        id,
        person,
        reach,
        purpose,
        expires_at: cells.timestamp()?,
        used_at: cells.opt_timestamp()?,
        created_by: cells.get()?,
    })
}

/// Adds a link to those of a person. A version before may have made one within the same reach: the one that expires
/// last is the last.
pub(crate) fn add_link(links: &mut Vec<PersonLink>, link: PersonLink) {
    links.push(link);
    links.sort_by_key(|link| std::cmp::Reverse(link.expires_at));
}

/// Reads [`SESSION`].
pub(crate) fn session(cells: &mut Cells<'_>) -> Result<Session, BadRow> {
    Ok(Session {
        id: SessionId::from_bytes(cells.bytes()?),
        person: PersonId::from_bytes(cells.bytes()?),
        authority: authority(cells)?,
        created_at: cells.timestamp()?,
        last_seen_at: cells.timestamp()?,
        signed_in_at: cells.timestamp()?,
        address: Private(cells.text()?),
    })
}

/// Reads [`PASSWORD`]; the grants are of other rows.
pub(crate) fn password(cells: &mut Cells<'_>) -> Result<KnownPassword, BadRow> {
    Ok(KnownPassword {
        person: PersonId::from_bytes(cells.bytes()?),
        hash: PasswordHash::new(cells.text()?),
        set_at: cells.timestamp()?,
        grants: Vec::new(),
    })
}

/// Reads [`BROWSER_MARK`].
pub(crate) fn browser_mark(cells: &mut Cells<'_>) -> Result<BrowserMark, BadRow> {
    Ok(BrowserMark {
        id: BrowserMarkId::from_bytes(cells.bytes()?),
        person: PersonId::from_bytes(cells.bytes()?),
        created_at: cells.timestamp()?,
        used_at: cells.timestamp()?,
        address: Private(cells.text()?),
    })
}

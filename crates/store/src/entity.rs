//! Tables as SeaORM sees them: one entity each for what is listed, filtered and reported.
//!
//! An entity names the columns and their types for its query builder, the same for both databases:
//! ids are raw bytes, moments and amounts 64-bit integers (`crate::rows`). Nothing is written
//! through an entity: what writes is a database's own, and the schema is a migration's.
//!
//! The order of the fields is a promise. `Entity::find` selects the columns in that order, and the
//! readers in `crate::rows` read by place: first what only lists use, the number of the row above
//! all, then the columns of the reader. A test holds the two together.

#![expect(unreachable_pub, reason = "the derive needs the model of an entity to be public")]

pub(crate) mod admin_key;
pub(crate) mod api_key;
pub(crate) mod audit;
pub(crate) mod audit_address;
pub(crate) mod credential;
pub(crate) mod event;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod person;
pub(crate) mod person_grant;
pub(crate) mod person_invitation;
pub(crate) mod person_link;
pub(crate) mod person_password;
pub(crate) mod person_wallet_link;
pub(crate) mod posting;
pub(crate) mod posting_details;
pub(crate) mod price;
pub(crate) mod usage_hour;
pub(crate) mod wallet;

#[cfg(test)]
mod tests {
    use sea_orm::{EntityTrait, IdenStatic as _, Iterable as _};

    use super::*;
    use crate::errand::admin_key::ADMIN_KEY;
    use crate::errand::trail;
    use crate::rows;

    /// The last columns of an entity, as many as a reader has, under an alias.
    fn columns<E: EntityTrait>(alias: &str, count: usize) -> Vec<String> {
        let names: Vec<_> = E::Column::iter().map(|column| column.as_str().to_owned()).collect();
        let (_of_lists, read) = names.split_at(names.len() - count);
        read.iter().map(|name| format!("{alias}.{name}")).collect()
    }

    #[test]
    fn the_fields_of_an_entity_stand_where_their_reader_reads() {
        fn check<E: EntityTrait>(alias: &str, read: &str) {
            let read: Vec<_> = read.split(", ").collect();
            assert_eq!(columns::<E>(alias, read.len()), read);
        }
        check::<wallet::Entity>("w", rows::WALLET_RECORD);
        check::<api_key::Entity>("k", rows::API_KEY);
        check::<event::Entity>("e", crate::event::EVENT);
        check::<posting::Entity>("t", rows::POSTING);
        check::<admin_key::Entity>("a", ADMIN_KEY);
        check::<person::Entity>("p", rows::person::PERSON);
        check::<person_grant::Entity>("g", rows::person::GRANT);
        check::<person_link::Entity>("l", rows::person::LINK);
        check::<person_wallet_link::Entity>("l", rows::person::LINK);
        check::<person_invitation::Entity>("i", rows::person::INVITATION);
        check::<audit::Entity>("a", trail::ROW);
        let (of_operation, of_price) = rows::OPERATION.split_once(", p.").unwrap();
        check::<operation::Entity>("o", of_operation);
        check::<price::Entity>("p", &format!("p.{of_price}"));
    }
}

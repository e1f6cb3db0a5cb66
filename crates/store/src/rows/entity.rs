//! Tables as SeaORM sees them: one entity each for what is listed, filtered and reported.
//!
//! An entity names the columns and their types for its query builder, the same for both databases:
//! ids are raw bytes, moments and amounts 64-bit integers (`crate::rows`). The schema is a
//! migration's.
//!
//! The order of the fields is a promise. `Entity::find` selects the columns in that order, and
//! readers read by place: first what only lists use, the number of the row above all, then the
//! columns of the reader. `row!` makes both from one list; for the entities whose readers are
//! written by hand a test holds the two together.

#![expect(unreachable_pub, reason = "the derive needs the model of an entity to be public")]

/// A table whose rows are values of the domain: its entity, and the impl of [`Row`](crate::rows::Row) that reads,
/// inserts and updates them.
///
/// ```text
/// row! {
///     "wallets" as "w", wallet: WalletRecord;
///     listed { #[sea_orm(primary_key)] seq: i64 }     only of lists
///     made { id: WalletId = wallet.wallet.id }        column: type = its value in `wallet`
///     set { low_balance: Option<Micros> = wallet.low_balance }
///     WalletRecord { … id, low_balance … }            the value, of the columns
/// }
/// ```
///
/// becomes
///
/// ```text
/// #[derive(DeriveEntityModel, …)] #[sea_orm(table_name = "wallets")]
/// pub struct Model { #[sea_orm(primary_key)] pub seq: i64, pub id: Vec<u8>, pub low_balance: Option<i64> }
/// impl FromCells for WalletRecord {
///     let id: WalletId = cells.get()?; let low_balance: Option<Micros> = cells.get()?;
///     Ok(WalletRecord { … id, low_balance … })
/// }
/// impl Row for WalletRecord { COLUMNS = "w.id, w.low_balance", columns = [[("id", …)], [("low_balance", …)]] }
/// ```
macro_rules! row {
    (
        $table:tt as $alias:tt, $value:ident: $record:ty;
        listed { $($(#[$of_listed:meta])* $listed:ident: $listed_type:ty),* $(,)? }
        made { $($(#[$of_made:meta])* $made:ident: $made_type:ty = $made_value:expr),* $(,)? }
        set { $($set:ident: $set_type:ty = $set_value:expr),* $(,)? }
        $read:expr
    ) => {
        use sea_orm::entity::prelude::*;
        use $crate::rows::{BadRow, Cell, Cells, Columns, FromCells, Raw, Row};

        #[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
        #[sea_orm(table_name = $table)]
        pub struct Model {
            $($(#[$of_listed])* pub $listed: Raw<$listed_type>,)*
            $($(#[$of_made])* pub $made: Raw<$made_type>,)*
            $(pub $set: Raw<$set_type>,)*
        }

        #[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
        pub enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}

        impl FromCells for $record {
            fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
                $(let $made: $made_type = cells.get()?;)*
                $(let $set: $set_type = cells.get()?;)*
                Ok($read)
            }
        }

        impl Row for $record {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static str = concat!(
                $(", ", $alias, ".", stringify!($made),)* $(", ", $alias, ".", stringify!($set),)*
            )
            .split_at(2)
            .1;

            fn columns(&self) -> [Columns; 2] {
                let $value = self;
                let made = vec![$((stringify!($made), <$made_type>::to_raw(&$made_value).into())),*];
                [made, vec![$((stringify!($set), <$set_type>::to_raw(&$set_value).into())),*]]
            }
        }
    };
}

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
pub(crate) mod refusal;
pub(crate) mod refusal_hour;
pub(crate) mod route_failure;
pub(crate) mod route_hour;
pub(crate) mod usage_hour;
pub(crate) mod wallet;
pub(crate) mod webhook;

#[cfg(test)]
mod tests {
    use holdfast_domain::admin::{ActorId, Person};
    use holdfast_domain::{PersonId, Timestamp};
    use sea_orm::{EntityTrait, IdenStatic as _, Iterable as _};

    use super::*;
    use crate::rows::{self, Row as _};
    use crate::schema::Dialect;

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
        check::<event::Entity>("e", crate::transaction::event::EVENT);
        check::<posting::Entity>("t", rows::POSTING);
        check::<person_link::Entity>("l", rows::person::LINK);
        check::<person_wallet_link::Entity>("l", rows::person::LINK);
        let (of_operation, _of_price) = rows::OPERATION.split_once(", p.").unwrap();
        check::<operation::Entity>("o", of_operation);
        check::<price::Entity>("p", rows::PRICE);
    }

    #[test]
    fn statements_of_a_row_name_its_columns_in_one_order() {
        let person = Person {
            id: PersonId::from_u128(1),
            email: None,
            name: None,
            created_at: Timestamp::from_micros(0),
            created_by: ActorId::Local,
            ended_at: None,
        };
        assert_eq!(
            Person::COLUMNS,
            "p.id, p.created_at, p.created_by, p.email, p.name, p.ended_at"
        );
        assert_eq!(
            person.update(Dialect::Sqlite).sql,
            "UPDATE people SET email = $2, name = $3, ended_at = $4 WHERE id = $1"
        );
        assert_eq!(
            Person::insert_all(Dialect::Postgres, &[person.clone(), person]).sql,
            "INSERT INTO people (id, created_at, created_by, email, name, ended_at) \
             VALUES ($1, $2, $3, $4, $5, $6), ($7, $8, $9, $10, $11, $12)"
        );
    }
}

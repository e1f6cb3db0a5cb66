//! `people`: who signs in.

use holdfast_domain::admin::{ActorId, EmailAddress, Person};
use holdfast_domain::private::Private;
use holdfast_domain::{PersonId, Timestamp};

row! {
    "people" as "p", person: Person;
    listed { #[sea_orm(primary_key)] seq: i64 }
    made {
        id: PersonId = person.id,
        created_at: Timestamp = person.created_at,
        created_by: ActorId = person.created_by,
    }
    set {
        email: Option<EmailAddress> = person.email,
        name: Option<Private<String>> = person.name,
        ended_at: Option<Timestamp> = person.ended_at,
    }
    Person { id, email, name, created_at, created_by, ended_at }
}

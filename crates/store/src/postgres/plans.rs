//! Query plans: each row that the writer names is found through an index, whatever the tables
//! looked like when the server chose the plan. It keeps its choice while they grow.

use holdfast_domain::WalletId;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor, Row as _};

use super::arrays::Rows;
use super::connect::tests::server;
use super::reads::{COUNTERS, OPERATIONS, PRICES, RECORDED_HOLDS, lock};
use super::session::BY_INDEX;
use super::statements::StatementTexts;
use crate::schema::Dialect;
use crate::schema::steps;
use crate::transaction::command::reads::REFUNDED_SINCE;

/// States of the tables when a plan is chosen: without statistics, empty, and with a few rows and a running
/// operation.
const STATES: [&str; 3] = [
    "",
    "ANALYZE",
    "INSERT INTO wallets (seq, id, name, currency, available, held, created_at) VALUES (1, '\\x00112233445566778899aabbccddeeff', 'w', 'USD', 9, 1, 0);
     INSERT INTO operations VALUES (1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0, '\\x00112233445566778899aabbccddeeff',
        '', gen_bytes(16), '', 'a/b', gen_bytes(8), gen_bytes(32), gen_bytes(32), 'p', gen_bytes(16), 'n',
        gen_bytes(16), 'leased', '[]');
     INSERT INTO running VALUES (1);
     ANALYZE",
];
const BYTES: &str = "CREATE FUNCTION gen_bytes(n int) RETURNS bytea LANGUAGE sql
    RETURN decode(repeat('00', n), 'hex')";

async fn plan(connection: &mut PgConnection, sql: &str) -> Vec<String> {
    connection.execute(AssertSqlSafe(format!("PREPARE asked AS {sql}"))).await.unwrap();
    let count = "SELECT cardinality(parameter_types) FROM pg_prepared_statements
        WHERE name = 'asked'";
    let count: i32 = connection.fetch_one(count).await.unwrap().get(0);
    let nulls = vec!["NULL"; usize::try_from(count).unwrap()].join(", ");
    // The lock has its ids in its text, and takes none.
    let given = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    let explain = AssertSqlSafe(format!("EXPLAIN EXECUTE asked{given}"));
    let rows = connection.fetch_all(explain).await.unwrap();
    connection.execute("DEALLOCATE asked").await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Lines that read a table otherwise than through an index that leads to each row by itself.
fn detours(plan: &[String]) -> Vec<&str> {
    const DIRECT: [&str; 10] = [
        "audit_refunds",
        "operations_pkey",
        "operations_id_key",
        "wallets_id_key",
        "counters_pkey",
        "postings_id_key",
        "postings_of_operation",
        "prices_pkey",
        "results_pkey",
        "running_pkey",
    ];
    let is_detour = |at: usize, line: &str| {
        let through = line.split_once(" using ").and_then(|(_, rest)| rest.split(' ').next());
        let next = plan.get(at + 1).map_or("", |next| next.trim());
        match through {
            Some(index) => !next.starts_with("Index Cond: ") || !DIRECT.contains(&index),
            None => line.contains("Seq Scan") || line.contains("Join Filter"),
        }
    };
    let lines = plan.iter().enumerate();
    lines.filter(|(at, line)| is_detour(*at, line)).map(|(_, line)| line.as_str()).collect()
}

#[tokio::test]
async fn postgres_rows_of_a_batch_are_found_one_by_one_whatever_the_planner_saw() {
    let some = || {
        let mut rows = Rows::default();
        rows.row();
        rows
    };
    let read = format!("{OPERATIONS} {COUNTERS}");
    let mut texts = StatementTexts::default();
    let lock = lock(&[WalletId::from_u128(1), WalletId::from_u128(2)].into());
    let write = texts.write(&std::array::from_fn(|_part| some()));
    for state in STATES {
        let mut connection = server().connect().await.unwrap();
        // All of it is undone when the connection ends.
        connection.execute("BEGIN; CREATE SCHEMA plans; SET search_path = plans").await.unwrap();
        let schema = steps::schema(Dialect::Postgres);
        for sql in [&schema, BYTES, state, BY_INDEX] {
            connection.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
        }
        for sql in [&lock, OPERATIONS, &read, PRICES, &write, REFUNDED_SINCE] {
            let plan = plan(&mut connection, sql).await;
            assert_eq!(detours(&plan), [""; 0], "{state}\n{sql}\n{plan:#?}");
        }
        // All that runs is read, and of the operations no others.
        let plan = plan(&mut connection, RECORDED_HOLDS).await;
        let on_operations: Vec<_> =
            plan.iter().filter(|line| line.contains(" on operations")).collect();
        let is_by_number = |line: &&String| line.contains(" using operations_pkey ");
        assert!(on_operations.iter().all(is_by_number), "{state}\n{plan:#?}");
        assert_eq!(on_operations.len(), 1, "{state}\n{plan:#?}");
    }
}

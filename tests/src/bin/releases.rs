//! Writes the ledgers of a release: what `cargo xtask fixture` runs once it has the release's binary and a server.
#![expect(clippy::print_stdout, reason = "a tool for people at a prompt")]

use std::process::ExitCode;

use holdfast_tests::releases::{Kind, folder, write};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [release] = arguments.as_slice() else {
        println!("usage: releases NAME");
        return ExitCode::from(2);
    };
    let folder = folder().join(release);
    for (kind, name) in [(Kind::Sqlite, "sqlite"), (Kind::Postgres, "postgres")] {
        let folder = folder.join(name);
        write(kind, &folder);
        println!("{}", folder.display());
    }
    ExitCode::SUCCESS
}

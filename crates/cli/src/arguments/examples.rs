//! Examples of the commands: two lines for each, which end its `--help` and its manual page.
//!
//! They are attached to the definition of clap by the words of the command, so that help, manual pages and
//! completions have one source. [`of_process`] reads the arguments by that definition: an error prints the same
//! help.
//!
//! A test parses every line, and finds a command without an example. An example names no real id, key or address.

use clap::{Command, CommandFactory, FromArgMatches};

use super::Cli;

/// The definition of the command line, with the examples of each command.
#[must_use]
pub fn definition() -> Command {
    EXAMPLES.iter().fold(Cli::command(), |command, [first, second]| {
        let words: Vec<_> = first.split(' ').skip(1).collect();
        attach(command, &words, &format!("Examples:\n  {first}\n  {second}"))
    })
}

/// Reads the arguments of the process.
///
/// # Errors
///
/// Help, the version, or a mistake in the arguments, as clap prints them.
pub fn of_process() -> Result<Cli, clap::Error> {
    let mut definition = definition();
    let matches = definition.try_get_matches_from_mut(holdfast_config::arguments())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut definition))
}

/// Ends the help of the command that these words begin with.
fn attach(command: Command, words: &[&str], text: &str) -> Command {
    match words.split_first() {
        Some((name, rest)) if command.find_subcommand(name).is_some() => {
            command.mut_subcommand(*name, |sub| attach(sub, rest, text))
        }
        Some(_) | None => command.after_help(text.to_owned()),
    }
}

const EXAMPLES: &[[&str; 2]] = &[
    ["holdfast serve", "holdfast serve --config /etc/holdfast/holdfast.toml"],
    [
        "holdfast sidecar --upstream https://gateway.example.com/v1",
        "holdfast sidecar --upstream https://gateway.example.com/v1 --listen 127.0.0.1:0",
    ],
    ["holdfast check-config --database", "holdfast check-config --config new.toml --probe --json"],
    ["holdfast migrate up", "holdfast migrate up --config /etc/holdfast/holdfast.toml"],
    ["holdfast migrate down", "holdfast migrate down --yes"],
    ["holdfast migrate status", "holdfast migrate status --json"],
    [
        "holdfast migrate copy --to 'postgres://holdfast_owner@db.internal/holdfast?sslmode=verify-full'",
        "holdfast migrate copy --to 'postgres://holdfast_owner@db.internal/holdfast?sslmode=verify-full' --json",
    ],
    ["holdfast backup /var/backups/holdfast.db", "holdfast backup monday.db --json"],
    [
        "holdfast restore --check /var/backups/holdfast.db",
        "holdfast restore /var/backups/holdfast.db --window 48h",
    ],
    ["holdfast ledger roots", "holdfast ledger roots --limit 31 --json"],
    [
        "holdfast operation proof 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11",
        "holdfast operation proof chatcmpl_7f2c1a9e5b7d8c3e9a510f8e6d2b4c11 --json",
    ],
    [
        "holdfast receipt verify receipt.json --keys keys.json",
        "holdfast receipt verify receipt.json --keys keys.json --json",
    ],
    ["holdfast completions bash", "holdfast completions zsh"],
    ["holdfast manual /usr/share/man/man1", "holdfast manual ."],
    [
        "holdfast wallet create acme",
        "holdfast wallet create acme --currency EUR --external-id cus_17 --low-balance 5.00",
    ],
    [
        "holdfast wallet update acme --low-balance 25.00",
        "holdfast wallet update acme --name acme-eu --no-external-id --reason renamed",
    ],
    [
        "holdfast wallet suspend acme --reason unpaid",
        "holdfast wallet suspend acme --reason 'invoice 7 is overdue' --json",
    ],
    ["holdfast wallet resume acme", "holdfast wallet resume acme --reason paid"],
    ["holdfast wallet close acme --dry-run", "holdfast wallet close acme --yes --reason left"],
    [
        "holdfast wallet deposit acme 100.00",
        "holdfast wallet deposit acme 100.00 --source stripe --reference pi_1 --note 'invoice 7'",
    ],
    [
        "holdfast wallet refund chatcmpl_7f2c1a9e5b7d8c3e9a510f8e6d2b4c11 0.25",
        "holdfast wallet refund 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11 0.25 --dry-run",
    ],
    [
        "holdfast wallet adjust acme 2.50 --reason goodwill",
        "holdfast wallet adjust acme -2.50 --reason 'entered twice' --dry-run",
    ],
    [
        "holdfast wallet posting 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast wallet posting 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --json",
    ],
    ["holdfast wallet show acme", "holdfast wallet show acme --json"],
    [
        "holdfast wallet list --state active --columns name,available",
        "holdfast wallet list --available-below 5.00 --wide",
    ],
    [
        "holdfast wallet ledger acme --from 2026-11-01 --to 2026-12-01",
        "holdfast wallet ledger acme --from 2026-11-01 --csv --output acme.csv",
    ],
    [
        "holdfast key issue --wallet acme --name laptop --spend-limit 5.00/day",
        "holdfast key issue --wallet acme --from names.txt --secrets keys.tsv --rpm 60",
    ],
    ["holdfast key list --wallet acme", "holdfast key list --state in_force --columns name,limits"],
    ["holdfast key show laptop", "holdfast key show laptop --json"],
    [
        "holdfast key update laptop --spend-limit 25.00/month",
        "holdfast key update laptop --rpm 60 --tpm none --all-models --reason moved",
    ],
    [
        "holdfast key suspend laptop --reason unpaid",
        "holdfast key suspend laptop --reason 'seen in a public repository'",
    ],
    ["holdfast key resume laptop", "holdfast key resume laptop --reason paid"],
    ["holdfast key revoke laptop", "holdfast key revoke laptop --yes --reason stolen"],
    ["holdfast key rotate laptop", "holdfast key rotate laptop --grace 0s --reason stolen"],
    [
        "holdfast admin-key issue --name deploy --role operator --expires 90d",
        "holdfast admin-key issue --name acme-portal --role holder_admin --wallet acme",
    ],
    [
        "holdfast admin-key rotate 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast admin-key rotate 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --grace 0s",
    ],
    ["holdfast admin-key list", "holdfast admin-key list --all --json"],
    [
        "holdfast admin-key show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast admin-key show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --json",
    ],
    [
        "holdfast admin-key revoke 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast admin-key revoke 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --yes --reason lost",
    ],
    [
        "holdfast person invite ada@example.com --role owner --name Ada",
        "holdfast person invite bob@example.com --role holder_admin --wallet acme",
    ],
    ["holdfast person list", "holdfast person list --columns email,grants"],
    [
        "holdfast person show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast person show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --json",
    ],
    [
        "holdfast person link 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast person link 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --reason 'lost password'",
    ],
    [
        "holdfast person revoke 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --role support",
        "holdfast person revoke 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --role holder_viewer --wallet acme",
    ],
    [
        "holdfast person end 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast person end 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --erase --yes",
    ],
    [
        "holdfast operation show chatcmpl_7f2c1a9e5b7d8c3e9a510f8e6d2b4c11",
        "holdfast operation show --api-key laptop 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
    ],
    [
        "holdfast operation list --wallet acme --status completed --from 2026-11-01",
        "holdfast operation list --running --columns id,model,hold",
    ],
    ["holdfast operation held", "holdfast operation held --json"],
    [
        "holdfast operation cancel chatcmpl_7f2c1a9e5b7d8c3e9a510f8e6d2b4c11 --reason runaway",
        "holdfast operation cancel 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11 --reason runaway --json",
    ],
    [
        "holdfast operation reconcile",
        "holdfast operation reconcile 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11 --reason 'its node is gone'",
    ],
    [
        "holdfast usage report --from 2026-11-01 --to 2026-12-01 --by wallet",
        "holdfast usage report --by hour,key --wallet acme --output hours.csv",
    ],
    [
        "holdfast usage exclude-costs --dry-run",
        "holdfast usage exclude-costs --reason 'wrong price of a provider'",
    ],
    ["holdfast ledger verify", "holdfast ledger verify --progress --json"],
    [
        "holdfast ledger export --from 2026-11-01 --to 2026-12-01 --output november.csv",
        "holdfast ledger export --wallet acme --from 2026-11-01 --format jsonl",
    ],
    [
        "holdfast posting list --kind deposit --wallet acme",
        "holdfast posting list --kind refund --columns created_at,amount,reason",
    ],
    ["holdfast event list --wallet acme", "holdfast event list --kind wallet.low --limit 10"],
    [
        "holdfast event show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast event show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --json",
    ],
    [
        "holdfast refusal list --wallet acme --code insufficient_funds",
        "holdfast refusal list --request-id 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --json",
    ],
    [
        "holdfast refusal hours --from 2026-11-01",
        "holdfast refusal hours --key laptop --code rate_limit_exceeded --json",
    ],
    ["holdfast job list", "holdfast job list --limit 5 --json"],
    [
        "holdfast job show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast job show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --json",
    ],
    [
        "holdfast job cancel 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast job cancel 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --reason 'too busy'",
    ],
    [
        "holdfast audit list --actor local --limit 20",
        "holdfast audit list --use-case wallet.suspend --wide",
    ],
    ["holdfast model list", "holdfast model list --json"],
    ["holdfast price list", "holdfast price list --model acme/large --currency USD"],
    ["holdfast node list", "holdfast node list --wide"],
    ["holdfast route list", "holdfast route list --columns name,failed_per_mille,last_error"],
    ["holdfast route show openai/gpt-5", "holdfast route show openai/gpt-5 --json"],
    [
        "holdfast webhook create https://hooks.example.com/holdfast",
        "holdfast webhook create https://hooks.example.com/acme --wallet acme --kind wallet.low",
    ],
    ["holdfast webhook list", "holdfast webhook list --wallet acme"],
    [
        "holdfast webhook show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast webhook show 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --json",
    ],
    [
        "holdfast webhook update 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --url https://hooks.example.com/new",
        "holdfast webhook update 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --all-kinds --no-description",
    ],
    [
        "holdfast webhook rotate 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast webhook rotate 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --reason yearly",
    ],
    [
        "holdfast webhook disable 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast webhook disable 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --reason maintenance",
    ],
    [
        "holdfast webhook enable 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast webhook enable 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --reason 'back again'",
    ],
    [
        "holdfast webhook test 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast webhook test 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --json",
    ],
    [
        "holdfast webhook deliveries 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast webhook deliveries 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --limit 20 --wide",
    ],
    [
        "holdfast webhook resend 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 018f6d2b-4c11-7c3e-9a51-0f8e6d2b4c11",
        "holdfast webhook resend 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 018f6d2b-4c11-7c3e-9a51-0f8e6d2b4c11 --json",
    ],
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::arguments::tests::commands;

    /// Words of a line as a shell splits it.
    fn words(line: &str) -> Vec<String> {
        let quoted = line.split('\'').enumerate();
        quoted
            .flat_map(|(part, text)| match part % 2 {
                0 => text.split_whitespace().map(str::to_owned).collect(),
                _quoted => vec![text.to_owned()],
            })
            .collect()
    }

    #[test]
    fn each_command_has_two_examples_that_are_understood() {
        let mut found = BTreeSet::new();
        commands(&Cli::command(), "", &mut found);
        let mut definition = definition();
        for [first, second] in EXAMPLES {
            for line in [first, second] {
                let read = definition.clone().try_get_matches_from_mut(words(line));
                assert!(read.is_ok(), "{line}: {read:?}");
            }
            let path = found.iter().find(|path| {
                let is_of =
                    |line: &str| format!("{line} ").starts_with(&format!("holdfast {path} "));
                is_of(first) && is_of(second)
            });
            let path = path.cloned();
            assert!(path.is_some_and(|path| found.remove(&path)), "{first}");
        }
        assert!(found.is_empty(), "commands without examples: {found:?}");
        let create =
            definition.find_subcommand_mut("wallet").unwrap().find_subcommand_mut("create");
        let help = create.unwrap().render_help().to_string();
        assert!(help.contains("Examples:\n  holdfast wallet create acme\n"), "{help}");
    }
}

//! The manual's first day, followed to the letter: its lines run in an empty folder, in their order. Only ports
//! are others, and what a person pastes.

use holdfast_tests::{Gateway, Ran, Site};

use crate::readme::shell;

const MANUAL: &str = include_str!("../../../docs/tutorials/first-production-day.md");
/// Ports that the manual writes of, which are others here.
pub(crate) const PUBLIC: u16 = 8080;
pub(crate) const ADMIN: u16 = 8081;
const SERVE: &str = "holdfast serve";

/// Blocks of a language in the page, without the indentation of the list that they stand in.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("   ```{language}\n");
    let block = |below: &str| {
        let (block, _) = below.split_once("   ```").unwrap();
        block
            .lines()
            .map(|line| line.strip_prefix("   ").unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
    };
    MANUAL.split(&fence).skip(1).map(block).collect()
}

fn written(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

struct Day {
    site: Site,
    /// The lines that each shell begins with.
    first: String,
}

impl Day {
    fn run(&self, lines: &str) -> String {
        Ran::of(&mut shell(&self.site, &format!("{}\n{lines}", self.first))).ok()
    }

    fn serve(&self, lines: &str) -> Gateway {
        let mut shell = shell(&self.site, &format!("{}\nexec {lines}", self.first));
        shell.env("HOLDFAST_LISTEN", "127.0.0.1:0").env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
        self.site.start(shell)
    }
}

#[test]
fn the_lines_of_the_first_day_work_as_they_stand() {
    let blocks = blocks("sh");
    let [secrets, set_up, serve, customer, ask, watch, back_up, before, update, after] =
        &blocks[..]
    else {
        panic!("{blocks:#?}")
    };
    let site = Site::empty();
    site.write("holdfast.toml", &self::blocks("toml")[0]);
    drop(Ran::of(&mut shell(&site, secrets)).ok());
    let mut lines = set_up.lines();
    let first = [lines.next().unwrap(), lines.next().unwrap()].join("\n");
    let day = Day { site, first };
    let said = day.run(&lines.collect::<Vec<_>>().join("\n"));
    assert!(said.contains("holdfast/sim-1"), "{said}");
    assert_eq!(serve, SERVE);
    let gateway = day.serve(serve);
    let key = day.run(customer);
    let key = key.split_whitespace().find(|word| word.starts_with("hfk_")).expect("a printed key");
    let address = gateway.address().to_string();
    let answer = day.run(&ask.replace("hfk_...", key).replace(&written(PUBLIC), &address));
    for told in ["You said: ", "customer_charge_micros", "completed", "settle"] {
        assert!(answer.contains(told), "{told}: {answer}");
    }
    let admin = gateway.admin_address().to_string();
    let scraped = day.run(&watch.replace(&written(ADMIN), &admin));
    assert!(scraped.contains("holdfast_build_info"), "{scraped}");
    drop(day.run(back_up));
    assert!(day.site.path("trial/holdfast.db").exists());
    drop(day.run(before));
    gateway.stop();
    let (migrate, serve) = update.split_once('\n').unwrap();
    assert_eq!(serve, SERVE);
    drop(day.run(migrate));
    let gateway = day.serve(serve);
    drop(day.run(after));
    gateway.stop();
}

#[test]
fn the_timer_runs_a_command_that_there_is() {
    let blocks = blocks("text");
    let (_when, command) =
        blocks[0].split_once(" HOLDFAST_CONFIG=/etc/holdfast/holdfast.toml ").unwrap();
    assert_eq!(command.trim_end(), "holdfast ledger verify");
}

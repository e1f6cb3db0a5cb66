//! The kit: the parts that pages are made of. Pages use it, and it uses no page.
//!
//! A page takes the parts from here. Modules that are named with what is taken of them, as in `moment::read`, are open.
//!
//! | module | contents |
//! |---|---|
//! | `visit`, `visitor` | a request of a signed-in visitor, and the visitor |
//! | `console_state` | state of all handlers |
//! | `page`, `section`, `cell` | a page, its sections and their values |
//! | `day_log` | sentences under the heads of their days |
//! | `time_chart`, `time_axis`, `ranking`, `tile` | values over time, the largest values, numbers of the first screen |
//! | `shell`, `asset` | the frame around every page, the stylesheet and the script |
//! | `form`, `field`, `value` | forms: their request key, their review, their fields, values with a bound |
//! | `flash` | result of a change, above the page that follows it |
//! | `input`, `address`, `moment`, `month` | parts of a request, addresses within the console, moments as forms write them, months |
//! | `amount` | numbers of reports as text |
//! | `paging`, `sorting` | pages of a list, and its order by a column |
//! | `counting` | reports that may take longer than a page |
//! | `isolation` | typed texts, isolated from the text around them |

mod address;
mod amount;
pub(crate) mod asset;
mod cell;
mod console_state;
pub(crate) mod counting;
mod day_log;
mod field;
pub(crate) mod flash;
pub(crate) mod form;
mod input;
mod isolation;
pub(crate) mod moment;
mod month;
mod page;
mod paging;
pub(crate) mod period;
mod ranking;
mod section;
pub(crate) mod shell;
pub(crate) mod sorting;
mod tile;
mod time_axis;
mod time_chart;
pub(crate) mod value;
mod visit;
mod visitor;

pub(crate) use self::address::{noun, of_thing, with_query, within, without};
pub(crate) use self::amount::{cents, difference, exact, exact_money, percent};
pub(crate) use self::cell::{Cell, Link, Tone, grouped, money};
pub use self::console_state::{Brand, ConsoleOptions, Logo};
pub(crate) use self::console_state::{ConsoleState, StatementQuery, StatementView};
pub(crate) use self::day_log::{DayLog, LogEntry};
pub(crate) use self::field::{Choice, FieldKind, FormField, put_beside};
pub(crate) use self::input::{Id, Query, SentFields, read_form, read_form_within};
pub(crate) use self::isolation::{isolated, sentence};
pub(crate) use self::month::{MONTH, Month};
pub(crate) use self::page::{Page, RefusedUseCase};
pub(crate) use self::paging::{AFTER, Pages};
pub(crate) use self::ranking::{Ranking, RankingEntry};
pub(crate) use self::section::{
    Cards, Checklist, Choices, Facts, Filter, Form, Notice, Section, Snippet, SortLink, Table,
};
pub(crate) use self::tile::{Tile, Tiles};
pub(crate) use self::time_axis::{Step, TimeAxis};
pub(crate) use self::time_chart::{Period, Series, TimeChart, Unit};
pub(crate) use self::visit::Visit;
pub(crate) use self::visitor::{CurrentSession, Visitor};

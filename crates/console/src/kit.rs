//! The kit: the parts that pages are made of. Pages use it, and it uses no page.
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

pub(crate) mod address;
pub(crate) mod amount;
pub(crate) mod asset;
pub(crate) mod cell;
pub(crate) mod console_state;
pub(crate) mod counting;
pub(crate) mod day_log;
pub(crate) mod field;
pub(crate) mod flash;
pub(crate) mod form;
pub(crate) mod input;
pub(crate) mod isolation;
pub(crate) mod moment;
pub(crate) mod month;
pub(crate) mod page;
pub(crate) mod paging;
pub(crate) mod period;
pub(crate) mod ranking;
pub(crate) mod section;
pub(crate) mod shell;
pub(crate) mod sorting;
pub(crate) mod tile;
pub(crate) mod time_axis;
pub(crate) mod time_chart;
pub(crate) mod value;
pub(crate) mod visit;
pub(crate) mod visitor;

//! Pages of lists: where they end, and what leads on.

use holdfast_domain::admin::listing::{Page, PageCursor};

fn page(rows: i64, limit: usize) -> Page<i64> {
    Page::of((0..rows).map(|row| (PageCursor(row + 10), row)).collect(), limit)
}

#[test]
fn a_page_ends_before_its_size_and_has_one_row_at_least() {
    let of = |size_max| page(4, 9).within(size_max, |row| usize::try_from(*row).unwrap() + 1);
    for (size_max, rows, next) in [
        (0, 1, Some(10)),
        (1, 1, Some(10)),
        (2, 1, Some(10)),
        (3, 2, Some(11)),
        (9, 3, Some(12)),
        (10, 4, None),
    ] {
        let page = of(size_max);
        assert_eq!((page.rows.len(), page.next), (rows, next.map(PageCursor)), "{size_max}");
        assert_eq!(page.places.len(), rows);
    }
    assert_eq!(page(0, 9).within(0, |_| 1), Page::empty());
    assert_eq!(page(4, 3).within(99, |_| 1).next, Some(PageCursor(12)), "there are more");
}

#[test]
fn rows_keep_their_places_where_some_have_no_view() {
    let odd = page(4, 9).filter_map(|row| (row % 2 == 1).then_some(row));
    assert_eq!((odd.rows, odd.places), (vec![1, 3], vec![PageCursor(11), PageCursor(13)]));
}

use std::io::IsTerminal;
use std::os::fd::AsFd;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use rustix::termios::tcgetwinsize;

/// What becomes of a column where the terminal is too narrow for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is never broken over lines: an instant, a number.
    Whole,
    /// It is broken over lines.
    Wraps,
    /// It is left out.
    IfRoom,
}

/// A column: its heading, and what becomes of it.
pub(super) type Column<'a> = (&'a str, Fit);

/// The terminal's width in columns; `None` where standard output is something else.
pub(super) fn width() -> Option<usize> {
    width_of(&std::io::stdout())
}

/// The same of another stream.
pub(super) fn width_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    const LEAST: usize = 80;
    if !stream.is_terminal() {
        return None;
    }
    let typed = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = typed.or_else(|| tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col)));
    Some(width.unwrap_or(LEAST).max(LEAST))
}

/// A table for people: a heading and no lines. Without a width each row is one line, for `grep`, and
/// has no empty cell, for `awk`.
pub(super) fn table(columns: &[Column<'_>], rows: &[Vec<String>], width: Option<usize>) -> String {
    let lines = lay_out(columns, rows, None);
    let Some(width) = width.filter(|width| lines.iter().any(|line| line.chars().count() > *width)) else {
        return joined(&lines);
    };
    let kept: Vec<bool> = columns.iter().map(|(_, fit)| *fit != Fit::IfRoom).collect();
    let keep =
        |row: &[String]| row.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(cell, _)| cell.clone()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| keep(row)).collect();
    let columns: Vec<Column<'_>> = columns.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(c, _)| *c).collect();
    joined(&lay_out(&columns, &rows, Some(width)))
}

fn joined(lines: &[String]) -> String {
    format!("{}\n", lines.join("\n"))
}

fn lay_out(columns: &[Column<'_>], rows: &[Vec<String>], width: Option<usize>) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(columns.iter().map(|(heading, _)| *heading));
    table.set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| shown(cell)));
    }
    for (at, (_, fit)) in columns.iter().enumerate() {
        if let Some(column) = table.column_mut(at) {
            column.set_padding((0, 2));
            if *fit == Fit::Whole && width.is_some() {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// A cell on one line.
fn shown(cell: &str) -> String {
    match cell {
        "" => "-".to_owned(),
        cell => cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column<'static>; 5] = [
        ("JOB", Fit::Wraps),
        ("SCHEDULED", Fit::Whole),
        ("STATE", Fit::Whole),
        ("WHY", Fit::Wraps),
        ("ID", Fit::IfRoom),
    ];
    const AT: &str = "2026-12-02 10:18:00Z";
    const ID: &str = "019341f2-0000-7000-8000-000000000000";

    fn row(job: &str, why: &str) -> Vec<String> {
        [job, AT, "succeeded", why, ID].map(str::to_owned).to_vec()
    }

    #[test]
    fn at_80_columns_long_names_and_reasons_wrap_and_no_instant_is_broken() {
        let job = "copy-the-warehouse-of-the-north-to-the-archive-of-the-south-every-night";
        let why = "could not be started: /usr/local/bin/copy-warehouse: No such file or directory (os error 2)";
        let text = table(&COLUMNS, &[row(job, why), row("b", "")], Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.matches(AT).count(), 2, "{text}");
        assert_eq!(text.matches("succeeded").count(), 2, "{text}");
        assert!(!text.contains("ID") && text.lines().count() > 3, "{text}");
    }

    #[test]
    fn what_has_room_stays_on_one_line() {
        let text = table(&COLUMNS, &[row("a", "drained")], Some(100));
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains(ID), "{text}");
    }

    #[test]
    fn without_a_terminal_a_row_is_a_line_without_empty_cells() {
        let text = table(&COLUMNS, &[row(&"x".repeat(190), ""), row("b", "two\nlines")], None);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.lines().nth(1).is_some_and(|line| line.contains("  -  ")), "{text}");
        assert!(text.contains("two lines"), "{text}");
    }
}

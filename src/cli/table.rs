use comfy_table::{ContentArrangement, Table, presets};

/// A table for people: no lines, a heading, and no wider than 80 columns.
pub(super) fn table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(80)
        .set_header(heading.iter().map(|column| column.to_uppercase()));
    for row in rows {
        table.add_row(row);
    }
    let width = table.column_count();
    for column in 0..width {
        if let Some(column) = table.column_mut(column) {
            column.set_padding((0, 2));
        }
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    format!("{}\n", lines.join("\n"))
}

//! A server-side `Table` → aligned columns of text.

use serde_json::Value;

/// What to show of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Layout {
    /// Columns that the server ranks below the usual ones, too.
    pub(crate) wide: bool,
    /// A leading column with each row's namespace.
    pub(crate) namespaces: bool,
}

/// Prints tables one after the other in columns that line up.
pub(crate) struct Printer {
    layout: Layout,
    columns: Vec<PrintedColumn>,
    widths: Vec<usize>,
    headed: bool,
}

struct PrintedColumn {
    index: usize,
    title: String,
}

impl Printer {
    /// A printer that has shown nothing yet.
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, columns: Vec::new(), widths: Vec::new(), headed: false }
    }

    /// The lines of a table: with headings the first time, without on later ones (watch events).
    pub(crate) fn lines(&mut self, table: &Value) -> Vec<String> {
        if let Some(columns) = table["columnDefinitions"].as_array().filter(|columns| !columns.is_empty()) {
            self.columns = visible(columns, self.layout);
        }
        let mut rows: Vec<Vec<String>> =
            table["rows"].as_array().into_iter().flatten().map(|row| self.cells(row)).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        if !self.headed {
            rows.insert(0, self.titles());
            self.headed = true;
        }
        self.widen(&rows);
        rows.iter().map(|row| aligned(row, &self.widths)).collect()
    }

    fn titles(&self) -> Vec<String> {
        let namespace = self.layout.namespaces.then(|| "NAMESPACE".to_owned());
        namespace.into_iter().chain(self.columns.iter().map(|column| column.title.clone())).collect()
    }

    fn cells(&self, row: &Value) -> Vec<String> {
        let namespace = || row["object"]["metadata"]["namespace"].as_str().unwrap_or("<none>").to_owned();
        let namespace = self.layout.namespaces.then(namespace);
        namespace.into_iter().chain(self.columns.iter().map(|column| cell(&row["cells"][column.index]))).collect()
    }

    fn widen(&mut self, rows: &[Vec<String>]) {
        for row in rows {
            self.widths.resize(self.widths.len().max(row.len()), 0);
            for (width, text) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(text.chars().count());
            }
        }
    }
}

fn visible(columns: &[Value], layout: Layout) -> Vec<PrintedColumn> {
    let shown = |column: &Value| layout.wide || column["priority"].as_i64().unwrap_or(0) == 0;
    let title = |column: &Value| column["name"].as_str().unwrap_or_default().to_uppercase();
    let columns = columns.iter().enumerate().filter(|(_, column)| shown(column));
    columns.map(|(index, column)| PrintedColumn { index, title: title(column) }).collect()
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => "<none>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (text, width) in row.iter().zip(widths) {
        line.push_str(text);
        line.extend(std::iter::repeat_n(' ', width + 3 - text.chars().count()));
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table() -> Value {
        json!({
            "columnDefinitions": [
                {"name": "Name", "priority": 0}, {"name": "Data", "priority": 0}, {"name": "Node", "priority": 1}],
            "rows": [
                {"cells": ["short", 2, "n1"], "object": {"metadata": {"namespace": "a"}}},
                {"cells": ["a-longer-name", 10, null], "object": {"metadata": {"namespace": "b"}}}],
        })
    }

    #[test]
    fn columns_line_up_under_their_titles() {
        let lines = Printer::new(Layout::default()).lines(&table());

        assert_eq!(lines, ["NAME            DATA", "short           2", "a-longer-name   10"]);
    }

    #[test]
    fn wide_shows_the_lower_columns_and_namespaces_lead() {
        let lines = Printer::new(Layout { wide: true, namespaces: true }).lines(&table());

        assert_eq!(lines[0], "NAMESPACE   NAME            DATA   NODE");
        assert_eq!(lines[2], "b           a-longer-name   10     <none>");
    }

    #[test]
    fn later_rows_keep_the_columns_and_have_no_headings() {
        let mut printer = Printer::new(Layout::default());
        printer.lines(&table());

        let event = json!({"rows": [{"cells": ["x", 1, "n"]}]});

        assert_eq!(printer.lines(&event), ["x               1"]);
    }

    #[test]
    fn an_empty_table_prints_nothing() {
        assert!(Printer::new(Layout::default()).lines(&json!({"columnDefinitions": [{"name": "Name"}]})).is_empty());
    }
}

//! How many commands share a log entry when many clients call concurrently.

use anyhow::Result;
use serde_json::Value;

use crate::client::Client;
use crate::table::Table;

/// The figures to show from the report of `flo bench`, with their titles.
const FIGURES: [(&str, &str); 7] = [
    ("starts per second", "runs_per_s"),
    ("commands per entry", "commands_per_entry"),
    ("entries per second", "entries_per_s"),
    ("median latency, ms", "p50_ms"),
    ("p99 latency, ms", "p99_ms"),
    ("maximum latency, ms", "max_ms"),
    ("errors", "errors"),
];

/// Starts runs by 64 clients for ten seconds.
///
/// # Errors
/// If the cluster served no start.
pub(super) fn measure(client: &Client<'_>) -> Result<Vec<String>> {
    let load = ["bench", "start", "--clients", "64", "--seconds", "10"];
    Ok(table(&client.object(&load)?).render())
}

fn table(report: &Value) -> Table {
    let mut table = Table::default();
    for (name, field) in FIGURES {
        let figure = &report[field];
        let figure = figure.is_number().then(|| figure.to_string());
        table.add([name.to_owned(), figure.unwrap_or_else(|| "-".to_owned())]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_figure_is_a_line_and_one_that_is_missing_a_dash() {
        let report = json!({"runs_per_s": 4120.25, "commands_per_entry": null, "errors": 0});
        let lines = table(&report).render();
        assert_eq!(lines[0], "starts per second    4120.25");
        assert_eq!(lines[1], "commands per entry         -");
        assert_eq!(lines[6], "errors                     0");
    }
}

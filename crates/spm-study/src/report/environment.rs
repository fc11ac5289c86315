//! The machine as `environment.json` tells it.

use serde_json::Value;

use super::load::Results;
use super::model::{Cell, Section, Table, grouped, significant};

/// What the machine is.
pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("environment", "Environment");
    let mut table = Table::new("environment", "Machine, tools and revision", &["what", "value"]);
    // What a reader asks first stands first; the rest follows as it comes.
    const FIRST: [&str; 8] =
        ["host", "system", "command", "revision", "compiler", "cpu", "memory_bytes", "gpu"];
    if let Value::Object(fields) = &results.environment {
        let rank = |name: &str| FIRST.iter().position(|f| *f == name).unwrap_or(FIRST.len());
        let mut names: Vec<&String> = fields.keys().collect();
        names.sort_by_key(|name| rank(name));
        for name in names {
            // The bandwidths by working set are drawn.
            if name != "started_unix" && name != "bandwidth_gb_per_s" {
                flatten(&name.replace('_', " "), &fields[name], &mut table);
            }
        }
    }
    if let Some(date) = date(&results.environment) {
        table.rows.insert(0, vec![Cell::text("date"), Cell::text(date)]);
    }
    if table.rows.is_empty() {
        section.missing("The machine is not described.", "cargo xtask bench-all");
    }
    section.table(table);
    section
}

/// Nested objects as dotted names; lists of plain values on one line.
fn flatten(prefix: &str, value: &Value, table: &mut Table) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            // Thread counts in the order of numbers, not of digits.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.parse::<u64>().unwrap_or(u64::MAX));
            for (name, value) in fields {
                let name = name.replace('_', " ");
                let path = if prefix.is_empty() { name } else { format!("{prefix} · {name}") };
                flatten(&path, value, table);
            }
        }
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            for (i, item) in items.iter().enumerate() {
                flatten(&format!("{prefix} · {i}"), item, table);
            }
        }
        Value::Array(items) => {
            let text: Vec<String> = items.iter().map(plain).collect();
            table.push(vec![Cell::text(prefix), Cell::text(text.join(", "))]);
        }
        plain_value => table.push(vec![Cell::text(prefix), Cell::text(plain(plain_value))]),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_u64() => grouped(n.as_u64().unwrap_or(0)),
        Value::Number(n) if n.is_f64() => significant(n.as_f64().unwrap_or(f64::NAN)),
        other => other.to_string(),
    }
}

/// Copy bandwidth of a backend in GB/s: the GPU's, or the greatest over CPU thread counts.
pub(super) fn bandwidth(environment: &Value, backend: &str) -> Option<f64> {
    if backend == "gpu" {
        return environment["gpu_copy_bandwidth_gb_per_s"].as_f64();
    }
    let by_threads = environment["copy_bandwidth_gb_per_s"].as_object()?;
    by_threads.values().filter_map(Value::as_f64).reduce(f64::max)
}

/// Day of the run, as far as it is recorded.
pub(super) fn date(environment: &Value) -> Option<String> {
    if let Some(date) = environment["date"].as_str() {
        return Some(date.to_owned());
    }
    // Days since 1970 to a date of the Gregorian calendar, years counted from March (H. Hinnant,
    // chrono-compatible low-level date algorithms, civil_from_days).
    let days = environment["started_unix"].as_u64()? / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    Some(format!("{}-{month:02}-{day:02}", year + era * 400 + next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bandwidth_is_the_greatest_of_the_device() {
        let environment = json!({
            "copy_bandwidth_gb_per_s": {"1": 10.5, "2": 19},
            "gpu_copy_bandwidth_gb_per_s": 3000
        });
        assert_eq!(bandwidth(&environment, "cpu"), Some(19.0));
        assert_eq!(bandwidth(&environment, "gpu"), Some(3000.0));
        let without = json!({"copy_bandwidth_gb_per_s": {}, "gpu_copy_bandwidth_gb_per_s": null});
        assert_eq!(bandwidth(&without, "gpu"), None);
        assert_eq!(bandwidth(&Value::Null, "cpu"), None);
    }

    #[test]
    fn seconds_become_a_date() {
        for (seconds, text) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_164_800, "2024-02-29"),
            (1_735_689_599, "2024-12-31"),
        ] {
            assert_eq!(date(&json!({"started_unix": seconds})).unwrap(), text);
        }
        assert_eq!(date(&Value::Null), None);
    }

    #[test]
    fn nested_objects_become_dotted_names() {
        let mut table = Table::new("e", "E", &["what", "value"]);
        flatten("", &json!({"cpu": {"model": "X", "simd": ["avx2", "fma"]}, "n": 1.5}), &mut table);
        let rows: Vec<Vec<String>> =
            table.rows.iter().map(|r| r.iter().map(Cell::raw).collect()).collect();
        assert_eq!(rows, [["cpu · model", "X"], ["cpu · simd", "avx2, fma"], ["n", "1.50"]]);
    }
}

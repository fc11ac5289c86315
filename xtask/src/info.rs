//! `cargo xtask info MATRIX`: what is known of a matrix.

use anyhow::Context;
use comfy_table::{Table, presets};
use spm_formats::matrix_market::Mode;
use spm_study::input::Input;
use spm_study::output::print;
use spm_study::structure;
use spm_study::suite::{self, Source};

/// Arguments of `info`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(help = suite::MATRIX_HELP)]
    matrix: String,
    /// Read a damaged Matrix Market file as far as it makes sense, instead of refusing it.
    #[arg(long)]
    lenient: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Loads the matrix and prints its statistics.
///
/// # Errors
/// Unknown name, unreadable file.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mode = if args.lenient { Mode::Lenient } else { Mode::Strict };
    let source = Source::parse(&args.matrix)?;
    let matrix = source
        .load::<f64>(mode, Input::default())
        .with_context(|| format!("cannot load {source}"))?;
    let file = structure::describe(&matrix);
    if args.json {
        return Ok(print(&format!("{}\n", serde_json::to_string_pretty(&file)?))?);
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header([file.name.as_str(), ""]);
    for (name, value) in flatten("", &serde_json::to_value(&file.stats)?) {
        table.add_row([name, value]);
    }
    let mut text = format!("{table}\nrows by number of entries\n");
    let most = file.row_length_histogram.iter().map(|b| b.2).max().unwrap_or(0);
    for (low, high, count) in file.row_length_histogram {
        let range = if low == high { low.to_string() } else { format!("{low}-{high}") };
        let bar = "#".repeat((count * 50).div_ceil(most.max(1)) as usize);
        text.push_str(&format!("{range:>15} {count:>10} {bar}\n"));
    }
    Ok(print(&text)?)
}

/// `a.b` paths of the leaves of a JSON value.
fn flatten(prefix: &str, value: &serde_json::Value) -> Vec<(String, String)> {
    match value {
        serde_json::Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| {
                let path =
                    if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&path, value)
            })
            .collect(),
        serde_json::Value::String(text) => vec![(prefix.to_owned(), text.clone())],
        other => vec![(prefix.to_owned(), other.to_string())],
    }
}

//! `cargo xtask kernels`: what the registries hold.

use comfy_table::{ContentArrangement, Table, presets};
use spm_formats::kernel::KernelInfo;
use spm_study::kernels;
use spm_study::output::print;

/// What the procedures of transpositions are listed as.
const PROCEDURE: &str = "procedure";

/// Arguments of `kernels`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this operation; `procedure`: what R3's transpositions are made of.
    #[arg(long, value_parser = ["spmv", "spmm", "transpose", "conversion", "read", PROCEDURE])]
    op: Option<String>,
    /// Only this backend.
    #[arg(long, value_parser = ["cpu", "gpu"])]
    backend: Option<String>,
    /// Print Markdown instead of a terminal table.
    #[arg(long)]
    markdown: bool,
    /// Print JSON: an array with an object for each kernel.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
}

/// The kernels and procedures that the arguments ask for, with the name of the operation.
fn chosen(args: &Args) -> Vec<(&'static str, KernelInfo)> {
    let kernels = kernels::all().into_iter().map(|info| (info.operation.name(), info));
    let procedures = kernels::procedures().into_iter().map(|info| (PROCEDURE, info));
    let wanted = |given: &Option<String>, name: &str| given.as_deref().is_none_or(|g| g == name);
    kernels
        .chain(procedures)
        .filter(|(op, info)| wanted(&args.op, op) && wanted(&args.backend, info.backend.name()))
        .collect()
}

/// Prints the table.
///
/// # Errors
/// The output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let text = if args.json { json(&chosen(args))? } else { table(&chosen(args), args.markdown) };
    Ok(print(&format!("{text}\n"))?)
}

fn table(kernels: &[(&str, KernelInfo)], markdown: bool) -> String {
    let mut table = Table::new();
    table.load_style(if markdown { presets::ASCII_MARKDOWN } else { presets::UTF8_FULL_CONDENSED });
    if !markdown {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(["operation", "backend", "kernel", "parameters (default)", "from", "what"]);
    for (op, info) in kernels {
        let parameters: Vec<String> =
            info.parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
        table.add_row([
            op,
            info.backend.name(),
            info.id,
            &parameters.join(", "),
            info.source,
            info.summary,
        ]);
    }
    table.to_string()
}

fn json(kernels: &[(&str, KernelInfo)]) -> serde_json::Result<String> {
    let kernels = kernels.iter().map(|(op, info)| {
        let parameters = info.parameters.iter().map(|p| {
            serde_json::json!({
                "name": p.name,
                "meaning": p.meaning,
                "default": p.default.to_string(),
                "studied": p.studied.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        });
        serde_json::json!({
            "operation": op,
            "backend": info.backend.name(),
            "kernel": info.id,
            "from": info.source,
            "what": info.summary,
            "parameters": parameters.collect::<Vec<_>>(),
        })
    });
    serde_json::to_string_pretty(&kernels.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(op: Option<&str>, backend: Option<&str>) -> Args {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Args { op: owned(op), backend: owned(backend), markdown: false, json: true }
    }

    #[test]
    fn procedures_are_listed_beside_the_kernels() {
        let all = chosen(&args(None, None));
        let ids: Vec<&str> = all.iter().filter(|k| k.0 == PROCEDURE).map(|k| k.1.id).collect();
        let expected = [
            "scan",
            "segmented-sort",
            "merge-small",
            "merge-big",
            "index-to-pointers",
            "pointers-to-index",
        ];
        assert_eq!(ids, expected);
        assert!(all.iter().any(|k| k.1.id == "scan-trans"));
    }

    #[test]
    fn options_choose_and_json_has_everything() {
        let some = chosen(&args(Some("spmm"), Some("gpu")));
        assert!(!some.is_empty());
        assert!(some.iter().all(|(op, info)| *op == "spmm" && info.backend.name() == "gpu"));
        assert!(chosen(&args(Some("procedure"), Some("cpu"))).is_empty());
        let text = json(&some).unwrap();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read.as_array().unwrap().len(), some.len());
        assert_eq!(read[0]["kernel"], some[0].1.id);
        assert_eq!(read[0]["parameters"].as_array().unwrap().len(), some[0].1.parameters.len());
    }
}

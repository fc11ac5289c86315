//! `cargo xtask kernels`: what the registries hold.

use comfy_table::{ContentArrangement, Table, presets};
use spm_formats::kernel::Operation;
use spm_study::kernels;
use spm_study::output::print;

/// Arguments of `kernels`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this operation.
    #[arg(long, value_parser = ["spmv", "spmm", "transpose", "conversion", "read"])]
    op: Option<String>,
    /// Print Markdown instead of a terminal table.
    #[arg(long)]
    markdown: bool,
}

/// Prints the table.
///
/// # Errors
/// The output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(if args.markdown {
        presets::ASCII_MARKDOWN
    } else {
        presets::UTF8_FULL_CONDENSED
    });
    if !args.markdown {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(["operation", "backend", "kernel", "parameters (default)", "from", "what"]);
    let wanted = |op: Operation| args.op.as_deref().is_none_or(|name| name == op.name());
    for info in kernels::all().into_iter().filter(|info| wanted(info.operation)) {
        let parameters: Vec<String> =
            info.parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
        table.add_row([
            info.operation.name(),
            info.backend.name(),
            info.id,
            &parameters.join(", "),
            info.source,
            info.summary,
        ]);
    }
    Ok(print(&format!("{table}\n"))?)
}

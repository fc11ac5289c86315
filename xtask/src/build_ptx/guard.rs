//! What must hold of the PTX before anybody launches it.

use anyhow::{bail, ensure};

/// One kernel of a PTX file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Entry {
    pub(super) name: String,
    /// `bar.sync` instructions.
    pub(super) barriers: usize,
    /// `shfl`, `vote`, `match` and `bar.warp` instructions.
    pub(super) warp_operations: usize,
}

/// Instructions that threads execute together.
const WARP_OPERATIONS: [&str; 4] = ["shfl.sync", "vote.sync", "match.", "bar.warp.sync"];
const BARRIERS: [&str; 3] = ["bar.sync", "barrier.sync", "barrier.cta.sync"];

/// Checks the files, one per target, and returns their entries.
///
/// - No `.func`: everything is inlined, and no panic path is left (its handler is an unresolved
///   `.extern .func`).
/// - No instruction that threads execute together comes from inline assembly, which the optimiser
///   may clone into both arms of a divergent branch; LLVM's intrinsics it may not.
/// - Every kernel has the same number of barriers for every target and element type: a barrier that
///   was cloned, merged or dropped in one of them shows.
///
/// # Errors
/// The first rule that does not hold, with the line.
pub(super) fn check(files: &[&str]) -> anyhow::Result<Vec<Vec<Entry>>> {
    let files: Vec<Vec<Entry>> = files.iter().map(|text| scan(text)).collect::<Result<_, _>>()?;
    let all = || files.iter().flatten();
    for entry in all() {
        let family = |name: &str| {
            let stem = name.strip_suffix("_f32").or_else(|| name.strip_suffix("_f64"));
            stem.unwrap_or(name).to_owned()
        };
        for other in all().filter(|other| family(&other.name) == family(&entry.name)) {
            ensure!(
                entry.barriers == other.barriers,
                "{} has {} barriers, {} has {}: the optimiser must not have touched one",
                entry.name,
                entry.barriers,
                other.name,
                other.barriers
            );
        }
    }
    for (first, other) in files.iter().zip(files.iter().skip(1)) {
        let names = |file: &[Entry]| file.iter().map(|e| e.name.clone()).collect::<Vec<_>>();
        ensure!(names(first) == names(other), "the targets do not have the same entries");
    }
    Ok(files)
}

fn scan(text: &str) -> anyhow::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut in_assembly = false;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        match line {
            "// begin inline asm" => in_assembly = true,
            "// end inline asm" => in_assembly = false,
            _ => {}
        }
        if line.split_whitespace().any(|word| word == ".func") {
            bail!(
                "line {number}: a function was not inlined, or a panic path is left in a kernel: \
                 {line}"
            );
        }
        if let Some(rest) = line.strip_prefix(".visible .entry ") {
            let name = rest.split('(').next().unwrap_or(rest).to_owned();
            entries.push(Entry { name, ..Entry::default() });
        }
        // A predicate may come first: `@%p1 bar.sync 0;`
        let instruction = if line.starts_with('@') {
            line.split_once(' ').map_or(line, |(_, rest)| rest.trim_start())
        } else {
            line
        };
        let starts = |names: &[&str]| names.iter().any(|name| instruction.starts_with(name));
        let (barrier, warp) = (starts(&BARRIERS), starts(&WARP_OPERATIONS));
        if barrier || warp {
            ensure!(
                !in_assembly,
                "line {number}: convergent instruction in inline assembly: {line}"
            );
            let Some(entry) = entries.last_mut() else {
                bail!("line {number}: outside of any entry: {line}")
            };
            entry.barriers += usize::from(barrier);
            entry.warp_operations += usize::from(warp);
        }
    }
    ensure!(!entries.is_empty(), "the PTX has no entry");
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, body: &str) -> String {
        format!(
            ".visible .entry {name}(\n\t.param .u32 {name}_param_0\n)\n{{\n{body}\n\tret;\n}}\n"
        )
    }

    #[test]
    fn counts_what_threads_do_together() {
        let text =
            kernel("a_f32", "\tbar.sync \t0;\n\tshfl.sync.bfly.b32 %r1, %r2;\n\t@%p1 bar.sync 0;")
                + &kernel("b", "\tvote.sync.ballot.b32 %r1;\n\tbar.warp.sync %r1;");
        let entries = &check(&[&text, &text]).unwrap()[1];
        let expected = [("a_f32", 2, 1), ("b", 0, 2)];
        for (entry, (name, barriers, warp_operations)) in entries.iter().zip(expected) {
            assert_eq!(*entry, Entry { name: name.to_owned(), barriers, warp_operations });
        }
    }

    #[test]
    fn refuses_what_must_not_be() {
        let refuse = |files: &[&str]| check(files).unwrap_err().to_string();
        let panics = ".extern .func (.param .b32 r) f\n".to_owned() + &kernel("a", "");
        assert!(refuse(&[&panics]).contains("panic path"));
        let assembly = kernel("a", "\t// begin inline asm\n\tbar.sync 0;\n\t// end inline asm");
        assert!(refuse(&[&assembly]).contains("inline assembly"));
        let (one, two) =
            (kernel("a_f32", "bar.sync 0;"), kernel("a_f64", "bar.sync 0;\nbar.sync 0;"));
        assert!(refuse(&[&(one.clone() + &two)]).contains("a_f32 has 1 barriers, a_f64 has 2"));
        assert!(refuse(&[&one, &kernel("b_f32", "")]).contains("same entries"));
        assert!(refuse(&["\n"]).contains("no entry"));
    }
}

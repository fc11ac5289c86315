//! What must hold of the PTX before anybody launches it.

use std::collections::HashMap;

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

/// Checks the PTX and returns its entries.
///
/// - No `.func`: everything is inlined, and no panic path is left (its handler is an unresolved
///   `.extern .func`).
/// - No instruction that threads execute together comes from inline assembly, which the optimiser
///   may clone into both arms of a divergent branch; LLVM's intrinsics it may not.
/// - Every kernel has as many barriers as its source, and warp operations if its source has any
///   (unrolled loops have more of them). The source's are counted in `unoptimised`, what the
///   compiler makes of it without optimising, along the calls: a barrier that the optimiser
///   copied, merged or dropped shows.
///
/// # Errors
/// The first rule that does not hold, with the line or the kernel.
pub(super) fn check(text: &str, unoptimised: &str) -> anyhow::Result<Vec<Entry>> {
    let entries = scan(text)?;
    let source = CallGraph::of(unoptimised);
    for entry in &entries {
        let expected = source.count(&entry.name);
        ensure!(
            entry.barriers == expected.barriers,
            "{} has {} barriers, its source {}: the optimiser must not have touched one",
            entry.name,
            entry.barriers,
            expected.barriers
        );
        ensure!(
            entry.warp_operations >= expected.warp_operations.min(1)
                && (expected.warp_operations > 0 || entry.warp_operations == 0),
            "{} has {} warp operations, its source {}",
            entry.name,
            entry.warp_operations,
            expected.warp_operations
        );
    }
    Ok(entries)
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
        let (barrier, warp) = convergent(line);
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

/// Whether a line is a barrier, or a warp operation.
fn convergent(line: &str) -> (bool, bool) {
    let instruction = without_predicate(line);
    let starts = |names: &[&str]| names.iter().any(|name| instruction.starts_with(name));
    (starts(&BARRIERS), starts(&WARP_OPERATIONS))
}

/// `bar.sync 0;` of `@%p1 bar.sync 0;`.
fn without_predicate(line: &str) -> &str {
    match line.strip_prefix('@') {
        Some(rest) => rest.split_once(char::is_whitespace).map_or(rest, |(_, rest)| rest.trim()),
        None => line,
    }
}

/// What the functions of a PTX file do themselves, and whom they call.
#[derive(Debug, Default)]
struct CallGraph<'a> {
    functions: HashMap<&'a str, Function<'a>>,
}

#[derive(Debug, Default)]
struct Function<'a> {
    own: Entry,
    calls: Vec<&'a str>,
}

impl<'a> CallGraph<'a> {
    fn of(text: &'a str) -> Self {
        let mut graph = Self::default();
        let mut current = "";
        for line in text.lines().map(str::trim) {
            if let Some(name) = defined_name(line) {
                current = name;
                graph.functions.entry(name).or_default();
            } else if let Some(function) = graph.functions.get_mut(current) {
                let (barrier, warp) = convergent(line);
                function.own.barriers += usize::from(barrier);
                function.own.warp_operations += usize::from(warp);
                function.calls.extend(called_name(without_predicate(line)));
            }
        }
        graph
    }

    /// What `name` executes, each call counted as a copy of the function called.
    fn count(&self, name: &str) -> Entry {
        self.count_unless(name, &mut Vec::new(), &mut HashMap::new())
    }

    fn count_unless<'n>(
        &'n self,
        name: &'n str,
        open: &mut Vec<&'n str>,
        known: &mut HashMap<&'n str, Entry>,
    ) -> Entry {
        if let Some(entry) = known.get(name) {
            return entry.clone();
        }
        let mut total = Entry { name: name.to_owned(), ..Entry::default() };
        // Only the formatting of panics calls itself.
        if let Some(function) = self.functions.get(name).filter(|_| !open.contains(&name)) {
            open.push(name);
            total.barriers = function.own.barriers;
            total.warp_operations = function.own.warp_operations;
            for called in &function.calls {
                let of_called = self.count_unless(called, open, known);
                total.barriers += of_called.barriers;
                total.warp_operations += of_called.warp_operations;
            }
            open.pop();
            known.insert(name, total.clone());
        }
        total
    }
}

/// The name in `.visible .entry NAME(` or `.func (.param .b32 result) NAME(`.
fn defined_name(line: &str) -> Option<&str> {
    let rest = line.split_once(".entry ").or_else(|| line.split_once(".func "))?.1.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(result) => result.split_once(')')?.1.trim_start(),
        None => rest,
    };
    rest.split(|c: char| c == '(' || c == ';' || c.is_whitespace()).next().filter(|n| !n.is_empty())
}

/// The name in `call.uni (result), NAME, (parameters);`; none for a call through a register.
fn called_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("call")?.split_once(char::is_whitespace)?.1.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(result) => result.split_once(')')?.1.trim_start_matches([',', ' ']),
        None => rest,
    };
    rest.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).next()
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
        let entries = &check(&text, &text).unwrap();
        let expected = [("a_f32", 2, 1), ("b", 0, 2)];
        for (entry, (name, barriers, warp_operations)) in entries.iter().zip(expected) {
            assert_eq!(*entry, Entry { name: name.to_owned(), barriers, warp_operations });
        }
    }

    #[test]
    fn counts_the_source_along_the_calls() {
        let text = ".func  (.param .b32 r) twice(\n)\n{\n\tcall.uni (r), once, (p);\n\t\
                    call.uni once, (p);\n\t@%p1 call.uni twice, ();\n\tcall %rd1, (), p;\n}\n\
                    .func once(\n)\n{\n\tbar.sync 0;\n\tshfl.sync.idx.b32 %r1;\n}\n"
            .to_owned()
            + &kernel("a", "\tbar.sync 0;\n\tcall.uni twice, (p);");
        let count = CallGraph::of(&text).count("a");
        assert_eq!((count.barriers, count.warp_operations), (3, 2));
    }

    #[test]
    fn refuses_what_must_not_be() {
        let refuse = |text: &str, source: &str| check(text, source).unwrap_err().to_string();
        let panics = ".extern .func (.param .b32 r) f\n".to_owned() + &kernel("a", "");
        assert!(refuse(&panics, "").contains("panic path"));
        let assembly = kernel("a", "\t// begin inline asm\n\tbar.sync 0;\n\t// end inline asm");
        assert!(refuse(&assembly, "").contains("inline assembly"));
        let (one, two) = (kernel("a", "bar.sync 0;"), kernel("a", "bar.sync 0;\nbar.sync 0;"));
        assert!(refuse(&two, &one).contains("a has 2 barriers, its source 1"));
        assert!(refuse(&one, &two).contains("a has 1 barriers, its source 2"));
        let shuffle = kernel("a", "shfl.sync.idx.b32 %r1;");
        assert!(refuse(&kernel("a", ""), &shuffle).contains("0 warp operations, its source 1"));
        assert!(refuse(&shuffle, &kernel("a", "")).contains("1 warp operations, its source 0"));
        assert!(refuse("\n", "").contains("no entry"));
    }
}

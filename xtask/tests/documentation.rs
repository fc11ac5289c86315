//! Checks the drawings of docs/formats.md and the tables of docs/experiments.md against the code.

use std::collections::BTreeMap;
use std::path::PathBuf;

use spm_formats::convert::{
    EllOptions, csr_to_bsr, csr_to_coo, csr_to_csc, csr_to_ell, csr_to_hll, csr_to_sell,
};
use spm_formats::{Csr, Layout, MemoryBudget};
use spm_gpu_kernels::convert::{ColumnBlockCounts, ColumnBlockEnds, ColumnBlockEntries};
use spm_gpu_kernels::emulator::Emulator;
use spm_gpu_kernels::spmv::compact_columns;
use spm_study::bench::experiments::WIDE;

/// The folder that holds the workspace.
fn repository() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/..").into()
}

/// The numbers of every line `label  numbers` of a drawing, by heading and label.
fn drawn() -> BTreeMap<(String, String), Vec<f64>> {
    let path = repository().join("docs/formats.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut heading, mut arrays) = (String::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(title) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        {
            heading = title.to_owned();
        } else if let Some((label, numbers)) = line.split_once("  ") {
            let words = numbers.replace(['|', '*'], " ");
            let numbers: Result<Vec<f64>, _> = words.split_whitespace().map(str::parse).collect();
            if let Ok(numbers) = numbers {
                arrays.insert((heading.clone(), label.to_owned()), numbers);
            }
        }
    }
    arrays
}

/// Counts what was compared, so that nothing drawn is left out.
struct Drawn {
    arrays: BTreeMap<(String, String), Vec<f64>>,
    heading: &'static str,
}

impl Drawn {
    fn is<T: Copy + TryInto<f64> + std::fmt::Debug>(&mut self, label: &str, array: &[T])
    where
        T::Error: std::fmt::Debug,
    {
        let key = (self.heading.to_owned(), label.to_owned());
        let array: Vec<f64> = array.iter().map(|&x| x.try_into().unwrap()).collect();
        assert_eq!(self.arrays.remove(&key), Some(array), "{key:?}");
    }

    fn offsets(&mut self, label: &str, array: &[usize]) {
        self.is(label, &array.iter().map(|&x| x as u32).collect::<Vec<_>>());
    }
}

/// What the conversion kernels make: whether a quad ends a part, columns and values.
fn column_blocks(
    (row_ptr, columns, values): (&[u32], &[u32], &[f64]),
    block_cols: u32,
    col_blocks: u32,
) -> (Vec<u32>, Vec<u16>, Vec<f64>) {
    let emulator = Emulator::default();
    let rows = row_ptr.len() as u32 - 1;
    let parts = rows * col_blocks;
    let (row_ptr, columns) = (emulator.alloc_from(row_ptr), emulator.alloc_from(columns));
    let values = emulator.alloc_from(values);
    let starts = emulator.alloc_zeroed::<u32>(parts as usize + 1);
    let first_entries = emulator.alloc_uninit::<u32>(parts as usize);
    let counts = ColumnBlockCounts {
        rows,
        block_cols,
        col_blocks,
        row_ptr: row_ptr.ptr(),
        col_ind: columns.ptr(),
        first_entries: first_entries.ptr_mut(),
        counts: starts.ptr_mut(),
    };
    emulator.launch::<ColumnBlockCounts>(rows, 32, 0, counts).unwrap();
    let mut quads = 0;
    let start = |count| {
        quads += count;
        quads - count
    };
    starts.write(&starts.to_vec().into_iter().map(start).collect::<Vec<_>>());
    let groups = quads.div_ceil(32) as usize;
    let (ends, firsts) = (emulator.alloc_zeroed(groups), emulator.alloc_zeroed(groups));
    let (of_ends, of_firsts) = (ends.ptr_mut(), firsts.ptr_mut());
    let args = ColumnBlockEnds { parts, starts: starts.ptr(), ends: of_ends, firsts: of_firsts };
    emulator.launch::<ColumnBlockEnds>(parts, 1, 0, args).unwrap();
    let offsets = emulator.alloc_uninit::<u16>(4 * quads as usize);
    let to_values = emulator.alloc_uninit::<f64>(4 * quads as usize);
    let entries = ColumnBlockEntries {
        rows,
        block_cols,
        col_blocks,
        row_ptr: row_ptr.ptr(),
        col_ind: columns.ptr(),
        values: values.ptr(),
        first_entries: first_entries.ptr(),
        starts: starts.ptr(),
        col_offsets: offsets.ptr_mut(),
        to_values: to_values.ptr_mut(),
    };
    emulator.launch::<ColumnBlockEntries<f64>>(rows, 32, 0, entries).unwrap();
    let words: Vec<u32> = ends.to_vec();
    let ends = (0..quads).map(|quad| words[quad as usize / 32] >> (quad % 32) & 1).collect();
    (ends, offsets.to_vec(), to_values.to_vec())
}

#[test]
fn the_drawings_are_what_the_code_makes() {
    let a = Csr::new(
        (6, 6),
        vec![0, 2, 3, 3, 7, 9, 10],
        vec![0, 2, 1, 0, 1, 3, 5, 2, 4, 5],
        vec![10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 99.0],
    )
    .unwrap();
    let budget = MemoryBudget::default();
    let mut drawn = Drawn { arrays: drawn(), heading: "COO" };
    let coo = csr_to_coo(a.view());
    drawn.is("row indices", coo.row_ind());
    drawn.is("column indices", coo.col_ind());
    drawn.is("values", coo.values());

    drawn.heading = "CSR";
    let (pointers, columns, values) = (a.row_ptr(), a.col_ind(), a.values());
    drawn.is("row_ptr", pointers);
    drawn.is("col_ind", columns);
    drawn.is("values", values);

    drawn.heading = "csr-compact (GPU): 16-bit column offsets from a base for each row";
    let (bases, offsets) = compact_columns(pointers, columns).unwrap();
    drawn.is("row_ptr", pointers);
    drawn.is("bases", &bases);
    drawn.is("column offsets", &offsets);
    drawn.is("values", values);

    drawn.heading = "csr-column-blocks (GPU): blocks of columns whose part of x fits shared memory";
    let (ends, offsets, padded) = column_blocks((pointers, columns, values), 4, 2);
    drawn.is("column offsets", &offsets);
    drawn.is("values", &padded);
    drawn.is("ends of parts", &ends);

    drawn.heading = "CSC";
    let csc = csr_to_csc(a.view());
    let (pointers, rows, values) = (csc.col_ptr(), csc.row_ind(), csc.values());
    drawn.is("col_ptr", pointers);
    drawn.is("row_ind", rows);
    drawn.is("values", values);

    for (heading, layout) in
        [("ELLPACK, row-major", Layout::RowMajor), ("ELLPACK, column-major", Layout::ColumnMajor)]
    {
        drawn.heading = heading;
        let options = EllOptions { layout, ..EllOptions::ROW_MAJOR };
        let ell = csr_to_ell(a.view(), options, &budget).unwrap();
        drawn.is("row lengths", ell.row_lengths());
        drawn.is("col_ind", ell.col_ind());
        drawn.is("values", ell.values());
    }

    drawn.heading = "HLL, hack size 2";
    let hll = csr_to_hll(a.view(), 2, &budget).unwrap();
    drawn.offsets("block offsets", hll.block_offsets());
    drawn.is("row lengths", hll.row_lengths());
    drawn.is("col_ind", hll.col_ind());
    drawn.is("values", hll.values());

    drawn.heading = "SELL-C-sigma, C = 2, sigma = 6";
    let sell = csr_to_sell(a.view(), 2, 6, &budget).unwrap();
    drawn.is("permutation", sell.permutation());
    drawn.offsets("chunk offsets", sell.chunk_offsets());
    drawn.is("row lengths", sell.row_lengths());
    drawn.is("col_ind", sell.col_ind());
    drawn.is("values", sell.values());

    drawn.heading = "BSR, blocks of 2 x 2";
    let bsr = csr_to_bsr(a.view(), (2, 2), &budget).unwrap();
    drawn.is("block_ptr", bsr.block_ptr());
    drawn.is("block_col", bsr.block_col());
    drawn.is("values", bsr.values());
    drawn.offsets("padding", bsr.padding());

    let left: Vec<_> = drawn.arrays.keys().filter(|(_, label)| !label.trim().is_empty()).collect();
    assert!(left.is_empty(), "drawn and not compared: {left:?}");
}

#[test]
fn every_kernel_of_a_report_is_in_its_table() {
    let path = repository().join("docs/experiments.md");
    let text = std::fs::read_to_string(path).unwrap();
    for report in spm_study::catalogue::Report::ALL.map(|report| report.to_string()) {
        let start = text.find(&format!("\n## {report}\n")).expect("a section for each report") + 1;
        let section = &text[start..];
        let section = &section[..section[2..].find("\n## ").map_or(section.len(), |end| end + 2)];
        for info in spm_study::kernels::all() {
            let ascribed =
                info.source.split([';', ',']).any(|part| part.trim().starts_with(&report));
            if ascribed && info.operation != spm_formats::kernel::Operation::Read {
                let named = [format!("`{}`", info.id), format!("`{}[", info.id)];
                let here = named.iter().any(|name| section.contains(name));
                assert!(here, "{report}: {} {} {}", info.operation, info.backend, info.id);
            }
        }
    }
}

#[test]
fn every_column_of_the_results_is_explained_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("results.csv");
    spm_study::results::Writer::open(&table).unwrap();
    let header = std::fs::read_to_string(table).unwrap();
    let path = repository().join("docs/experiments.md");
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split("\n## ").find(|part| part.starts_with("Columns of")).unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let explained: Vec<&str> = cells.flat_map(|cell| cell.split(", ")).collect();
    let explained: Vec<&str> = explained.iter().map(|name| name.trim_matches('`')).collect();
    assert_eq!(explained.join(","), header.trim());
}

/// The example of the repository's README is that of spm-sparse's, which is compiled and run there.
#[test]
fn the_example_of_the_readme_is_a_tested_one() {
    let example = |path: &str| {
        let text = std::fs::read_to_string(repository().join(path)).unwrap();
        let start = text.find("```rust\n").expect("an example");
        let end = text[start + 3..].find("```\n").expect("the end of the example") + 3;
        text[start..start + end].to_owned()
    };
    assert_eq!(example("README.md"), example("crates/spm-sparse/README.md"));
}

#[test]
fn what_the_documentation_names_is_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let results = repository().join("crates/spm-study/tests/data/results");
    let page = spm_study::report::write_to(&results, folder.path()).unwrap();
    let html = std::fs::read_to_string(page).unwrap();
    let document = repository().join("docs/experiments.md");
    let mut found = 0;
    // The fixture has no run of the wide suite, so its page has no section for it.
    for name in std::fs::read_to_string(document).unwrap().split('`').skip(1).step_by(2) {
        if let Some(anchor) = name.strip_prefix('#') {
            let drawn = html.contains(&format!("<section id=\"{anchor}\""));
            assert!(drawn || anchor == WIDE.name, "{name}");
        } else if let Some(experiment) = name.strip_prefix("cargo xtask bench ") {
            let drawn = html.contains(&format!("cargo xtask bench {experiment}"));
            assert!(drawn || experiment == WIDE.name, "{name}");
        } else if ["r0-", "r1-", "r2-", "r3-", "r4-", "spmv-"].iter().any(|r| name.starts_with(r)) {
            let file = |sub: &str, ending: &str| {
                folder.path().join(sub).join(format!("{name}.{ending}")).is_file()
            };
            assert!(file("tables", "csv") || file("figures", "svg"), "{name}");
            found += 1;
        }
    }
    assert!(found > 40, "{found} tables and figures named");
}

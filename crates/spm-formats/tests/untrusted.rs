//! What hostile files may cost: the peak of allocated memory against the bounds that
//! `spm_formats::matrix_market` and `spm_formats::cache` document. A reader that takes
//! quadratic time would take minutes here.
#![cfg(feature = "io")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use spm_formats::cache;
use spm_formats::matrix_market::{self, MatrixMarketError, Mode, ReadOptions};

/// Counts bytes that are allocated now, and the most there were.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: the system's allocator, whatever is counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // As if the old block lived until the new one is filled.
        more(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const THREADS: usize = 2;
const CHUNK: usize = 1 << 12;
/// Bytes of memory for each byte of text, and for each byte of a chunk of each thread.
const PER_BYTE: usize = 48;
const PER_CHUNK_BYTE: usize = 256;
/// Threads, buffers of decompressors, error texts.
const FIXED: usize = 2 << 20;

/// The peak of what `work` allocates.
fn peak<R>(work: impl FnOnce() -> R) -> (usize, R) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (PEAK.load(Ordering::Relaxed) - before, result)
}

fn options() -> ReadOptions {
    ReadOptions { threads: Some(THREADS), chunk_bytes: CHUNK, ..ReadOptions::default() }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(text).and_then(|()| gzip.finish()).unwrap()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Reads the text as a file and packed; the peak must stay within the bound.
    fn check(&self, what: &str, text: &[u8], sound: bool) {
        let bound = PER_BYTE * text.len() + PER_CHUNK_BYTE * CHUNK * THREADS + FIXED;
        let gzip = self.file("input.mtx.gz", &gzip(text));
        for path in [self.file("input.mtx", text), gzip] {
            for mode in [Mode::Strict, Mode::Lenient] {
                let options = ReadOptions { mode, ..options() };
                let (peak, file) = peak(|| matrix_market::read::<f64>(&path, &options));
                let ratio = peak as f64 / text.len() as f64;
                println!("{what}, {mode:?}: {} bytes of text, peak {ratio:.1} each", text.len());
                assert!(peak <= bound, "{what}, {path:?}: {peak} bytes, {bound} are promised");
                assert_eq!(file.is_ok(), sound, "{what}: {:?}", file.err());
            }
        }
    }
}

const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";
/// Unit of the texts' lengths.
const QUARTER_MIB: usize = 1 << 18;

fn text(head: &str, body: &str, bytes: usize) -> Vec<u8> {
    [head.as_bytes(), body.repeat(bytes / body.len()).as_bytes()].concat()
}

/// One test: the counters are the process's.
#[test]
fn memory_is_bounded_by_the_length_of_the_text() {
    let folder = Folder(tempfile::tempdir().unwrap());
    texts(&folder);
    archives(&folder);
    limits(&folder);
    npz(&folder);
}

fn texts(folder: &Folder) {
    let claim = "4294967294 4294967294 4294967295\n";
    folder.check("a large claim", format!("{GENERAL}{claim}1 1 1\n").as_bytes(), false);
    let head = format!("{GENERAL}{claim}");
    folder.check("entries for a large claim", &text(&head, "1 1 1\n", 4 * QUARTER_MIB), false);
    let pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n9 9 4294967295\n";
    folder.check("pattern for a large claim", &text(pattern, "2 1\n", 4 * QUARTER_MIB), false);
    folder.check("blank lines", &text(&head, "\n", 4 * QUARTER_MIB), false);
    folder.check("blanks", &text(&head, " ", 8 * QUARTER_MIB), false);
    folder.check("blank lines of blanks", &text(&head, " \t\r\n", 4 * QUARTER_MIB), false);
    folder.check("one long number", &text(&head, "1", 8 * QUARTER_MIB), false);
    let value = format!("{GENERAL}1 1 1\n1 1 0.");
    folder.check("one long value", &text(&value, "1", 8 * QUARTER_MIB), true);
    folder.check("one long line", &text("%%MatrixMarket ", "x", 8 * QUARTER_MIB), false);
    folder.check("one long comment", &text(&format!("{GENERAL}%"), "x", 8 * QUARTER_MIB), false);
    folder.check("a comment of blanks", &text(&format!("{GENERAL}%"), " ", 8 * QUARTER_MIB), false);
    folder.check("comments", &text(GENERAL, "%\n", 2 * QUARTER_MIB), false);
    folder.check("comments of a byte", &text(GENERAL, "%x\n", 2 * QUARTER_MIB), false);
    folder.check(
        "comments, not UTF-8",
        &[text(GENERAL, "%x\n", 9), vec![0xff; QUARTER_MIB]].concat(),
        false,
    );
    let wide = format!(
        "{GENERAL}% x\n1 1 1\n1{}1{}1{}\n",
        " ".repeat(QUARTER_MIB),
        "\t".repeat(QUARTER_MIB),
        " ".repeat(QUARTER_MIB)
    );
    folder.check("wide blanks", wide.as_bytes(), true);
    let n = 400_000;
    let symmetric = "%%MatrixMarket matrix coordinate pattern symmetric\n";
    let entries: String = (0..n).map(|_| "9 1\n").collect();
    folder.check("expansion", format!("{symmetric}9 9 {n}\n{entries}").as_bytes(), true);
    let array = "%%MatrixMarket matrix array integer symmetric\n1500 1500\n";
    folder.check("an array", &text(array, "1\n", 1500 * 1501), true);
    for shape in ["0 4294967294", "4294967294 0"] {
        let empty = format!("%%MatrixMarket matrix array real general\n{shape}\n");
        folder.check("an array without values", empty.as_bytes(), true);
    }
    let expanded = "%%MatrixMarket matrix array real symmetric\n70000 70000\n1\n";
    folder.check("more than 32 bits when expanded", expanded.as_bytes(), false);
}

fn tar(members: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    members(&mut archive);
    archive.into_inner().unwrap()
}

fn member(archive: &mut tar::Builder<Vec<u8>>, name: &str, text: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, text).unwrap();
}

fn archives(folder: &Folder) {
    let sound = format!("{GENERAL}1 1 1\n1 1 2\n");
    let sound = sound.as_bytes();
    let many = tar(|archive| {
        (0..4000).for_each(|i| member(archive, &format!("a/{i}/input.mt"), b"x"));
        member(archive, "x/input.mtx", sound);
    });
    let nested = tar(|archive| member(archive, &format!("{}input.mtx", "a/".repeat(9000)), sound));
    let long_name = tar(|archive| member(archive, &"n".repeat(4 * QUARTER_MIB), sound));
    let folder_first = tar(|archive| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        archive.append_data(&mut header, "input.mtx/", &b""[..]).unwrap();
        member(archive, "input.mtx/input.mtx", sound);
    });
    // A sparse file of 1 TB, of which the archive holds the first 512 bytes.
    let sparse = tar(|archive| {
        let mut header = tar::Header::new_gnu();
        header.set_path("input.mtx").unwrap();
        header.set_entry_type(tar::EntryType::GNUSparse);
        header.set_size(512);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.set_real_size(1 << 40);
        gnu.sparse[0].set_offset(0);
        gnu.sparse[0].set_length(512);
        gnu.sparse[1].set_offset(1 << 40);
        gnu.sparse[1].set_length(0);
        header.set_cksum();
        let mut text = text(&format!("{GENERAL}9 9 9\n"), "1 1 1\n", 400);
        text.resize(512, b' ');
        archive.append(&header, &text[..]).unwrap();
    });
    // A member that says it is longer than the archive.
    let mut short = tar(|archive| member(archive, "input.mtx", &text(GENERAL, "%x\n", 2000)));
    short.truncate(1200);
    for (what, archive, sound) in [
        ("many members", many, true),
        ("nested folders", nested, true),
        ("a long name", long_name, false),
        ("a folder of the same name", folder_first, true),
        ("a sparse file", sparse, false),
        ("cut short", short, false),
        ("zeros", vec![0; 8 * QUARTER_MIB], false),
        ("no archive", vec![b'x'; QUARTER_MIB], false),
    ] {
        let path = folder.file("input.tar.gz", &gzip(&archive));
        let bound = PER_BYTE * archive.len() + PER_CHUNK_BYTE * CHUNK * THREADS + FIXED;
        let (peak, file) = peak(|| matrix_market::read::<f64>(&path, &options()));
        println!("archive, {what}: {} bytes, peak {peak}", archive.len());
        assert!(peak <= bound, "archive, {what}: {peak} bytes, {bound} are promised");
        assert_eq!(file.is_ok(), sound, "archive, {what}: {:?}", file.err());
    }
}

/// The two limits that a caller sets.
fn limits(folder: &Folder) {
    let head = format!("{GENERAL}9 9 4294967295\n");
    let bomb = text(&head, "1 1 1\n", 16 * QUARTER_MIB);
    let packed = gzip(&bomb);
    assert!(bomb.len() > 300 * packed.len(), "{} of {} bytes", packed.len(), bomb.len());
    let long_name = gzip(&tar(|archive| member(archive, &"n".repeat(16 * QUARTER_MIB), b"")));
    let limited = ReadOptions { max_text_bytes: QUARTER_MIB as u64, ..options() };
    for path in [
        folder.file("input.mtx", &bomb),
        folder.file("input.mtx.gz", &packed),
        folder.file("input.tar.gz", &long_name),
    ] {
        let (peak, file) = peak(|| matrix_market::read::<f64>(&path, &limited));
        let error = file.unwrap_err().to_string();
        assert!(error.ends_with("the text is longer than 262144 bytes"), "{error}");
        let bound = PER_BYTE * QUARTER_MIB + PER_CHUNK_BYTE * CHUNK * THREADS + FIXED;
        assert!(peak <= bound, "{path:?}: {peak} bytes, {bound} are promised");
    }
    let exact = format!("{GENERAL}1 1 1\n1 1 2\n");
    for name in ["input.mtx", "input.mtx.gz"] {
        let bytes =
            if name.ends_with("gz") { gzip(exact.as_bytes()) } else { exact.clone().into() };
        let path = folder.file(name, &bytes);
        let limit = |max_text_bytes| ReadOptions { max_text_bytes, ..options() };
        let length = exact.len() as u64;
        assert!(matrix_market::read::<f64>(&path, &limit(length)).is_ok(), "{name}");
        assert!(matrix_market::read::<f64>(&path, &limit(length - 1)).is_err(), "{name}");
    }

    let path = folder.file("input.mtx", format!("{GENERAL}4294967294 1 0\n").as_bytes());
    let limited = ReadOptions { max_dimension: 1_000_000, ..options() };
    let (peak, csr) = peak(|| matrix_market::read_csr::<f64>(&path, &limited));
    let error = csr.unwrap_err();
    assert!(matches!(error, MatrixMarketError::Invalid { line: 2, .. }), "{error}");
    assert!(error.to_string().contains("a number of rows of at most 1000000"), "{error}");
    assert!(peak < FIXED, "{peak}");
    let path = folder.file("input.mtx", format!("{GENERAL}1000000 1000000 0\n").as_bytes());
    let (peak, csr) = peak_of_csr(&path, &limited);
    assert_eq!(csr.unwrap().rows(), 1_000_000);
    assert!(peak < 4 * 1_000_000 + FIXED, "{peak}");
    // Entries out of order are counted by row.
    let unsorted = format!("{GENERAL}1000000 1000000 2\n9 1 1\n1 1 1\n");
    let path = folder.file("input.mtx", unsorted.as_bytes());
    let (peak, csr) = peak_of_csr(&path, &limited);
    assert_eq!(csr.unwrap().nnz(), 2);
    assert!(peak < 8 * 1_000_000 + FIXED, "{peak}");
}

fn peak_of_csr(
    path: &PathBuf,
    options: &ReadOptions,
) -> (usize, Result<spm_formats::Csr<f64>, MatrixMarketError>) {
    peak(|| matrix_market::read_csr::<f64>(path, options))
}

/// A binary file: 8 bytes of memory for each of the file's, whatever it declares.
fn npz(folder: &Folder) {
    use spm_formats::Csr;
    let n = 100_000;
    let a = Csr::new((n, n), (0..=n as u32).collect(), (0..n as u32).collect(), vec![1.0; n]);
    let a = a.unwrap();
    let path = folder.0.path().join("matrix.npz");
    cache::save_npz(&path, a.view()).unwrap();
    let sound = fs::read(&path).unwrap();
    let check = |what: &str, bytes: &[u8], expected: bool| {
        let path = folder.file("input.npz", bytes);
        let (peak, read) = peak(|| cache::load_npz::<f64>(&path));
        println!("npz, {what}: {} bytes, peak {peak}", bytes.len());
        assert!(peak <= 8 * bytes.len() + FIXED, "npz, {what}: {peak} bytes");
        assert_eq!(read.is_ok(), expected, "npz, {what}: {:?}", read.err());
    };
    check("sound", &sound, true);
    // Shapes that claim more elements: (100000,) becomes (999999,).
    let mut claims = sound.clone();
    let places: Vec<usize> =
        (0..claims.len() - 7).filter(|&i| claims[i..].starts_with(b"(100000,")).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&i| claims[i + 1..i + 7].copy_from_slice(b"999999"));
    check("large claims", &claims, false);
    check("cut", &sound[..sound.len() / 2], false);
    check("zeros", &vec![0; QUARTER_MIB], false);
    check("ends of archives", &b"PK\x05\x06".repeat(QUARTER_MIB / 16), false);
}

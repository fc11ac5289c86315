//! Reading a file and planning a product take at most 2.5 times the memory of the matrix, on all ranks
//! together: no rank holds everything.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use spm_dist::threads::run;
use spm_dist::{DistCsr, DistOperator, Kernel, Options, matrix_market};
use spm_formats::matrix_market::{ReadOptions, write_csr};
use spm_testing::generate;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator, which counts besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Layout) -> *mut u8 {
        let held = HELD.fetch_add(block.size(), Ordering::Relaxed) + block.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, block: Layout) {
        HELD.fetch_sub(block.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, block) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_rank_holds_everything() {
    let path = std::env::temp_dir().join(format!("spm-dist-memory-{}.mtx", std::process::id()));
    let matrix_bytes = {
        let a = generate::named("stencil27[n=36]").unwrap().generate::<f64>().unwrap();
        write_csr(&path, a.view(), &[]).unwrap();
        a.memory_bytes()
    };
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let held = run(4, |comm| {
        let options = ReadOptions { chunk_bytes: 1 << 14, ..ReadOptions::default() };
        let (rows, matrix) = matrix_market::read::<f64>(comm, &path, &options)?;
        let a = DistCsr::new(comm, &rows, &rows, matrix)?;
        let mut options = Options::default();
        options.kernel = Kernel::Fixed("csr-nnz-balanced".to_owned());
        let mut op = DistOperator::new(comm, a, &options)?;
        let (x, mut y) = (vec![1.0; op.matrix().local_cols()], vec![0.0; op.matrix().local_rows()]);
        op.apply(&x, &mut y)?;
        Ok(op.memory_bytes())
    });
    std::fs::remove_file(path).unwrap();
    let most = (MOST.load(Ordering::Relaxed) - before) as f64 / matrix_bytes as f64;
    let held = held.unwrap().iter().sum::<u64>() as f64 / matrix_bytes as f64;
    println!("at most {most:.2} times the matrix, {held:.2} times at the end");
    assert!(most <= 2.5, "at most {most:.2} times the matrix");
    assert!(held <= 1.2, "{held:.2} times the matrix at the end");
}

//! No plan and no conversion allocates more than its budget: every kernel, every studied parameter.

use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use spm_cpu::{PlanOptions, Threads, spmm, spmv, transpose};
use spm_formats::convert::{self, ConversionInput};
use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput};
use spm_formats::{Csr, DenseShape, FormatError, Layout, MemoryBudget};
use spm_testing::generate;

struct Counting;

static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator, which counts besides. A reallocation is an allocation, a copy and
// a deallocation, as `GlobalAlloc` has it: the most that one may take.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        let bytes = block.size() as u64;
        PEAK.fetch_max(LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, block: Block) {
        LIVE.fetch_sub(block.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, block) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` returns, and the most bytes that were allocated at one time meanwhile.
fn peak<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (result, PEAK.load(Ordering::Relaxed) - before)
}

/// Works with budgets around what the work takes without one: each is kept, or refused with a size
/// that exceeds it. Ten times what it takes is enough: planning assumes the worst that columns can do where
/// it does not count. Returns what is not so.
fn check(
    label: &str,
    info: &KernelInfo,
    work: impl Fn(MemoryBudget) -> Result<(), PlanError>,
) -> Vec<String> {
    let (result, takes) = peak(|| work(MemoryBudget::unlimited()));
    match result {
        Ok(()) => {}
        // The kernel does not apply to the matrix.
        Err(PlanError::Unsupported { .. }) => return Vec::new(),
        Err(error) => return vec![format!("{label}: {error}")],
    }
    let enough = 10 * takes + MemoryBudget::ALLOWANCE;
    let mut faults = Vec::new();
    for budget in [0, takes / 4, takes * 9 / 10, enough] {
        let (result, took) = peak(|| work(MemoryBudget::bytes(budget)));
        let kept = match &result {
            Ok(()) => true,
            Err(PlanError::Format(FormatError::OverBudget { required, budget: of, .. })) => {
                *required > budget && *of == budget && budget != enough && info.id != "auto"
            }
            Err(_) => false,
        };
        if !kept || took > budget + MemoryBudget::ALLOWANCE {
            faults.push(format!("{label}, budget {budget} of {takes}: took {took}, {result:?}"));
        }
    }
    faults
}

fn variants(info: &KernelInfo) -> impl Iterator<Item = (String, Parameters)> {
    info.variants().into_iter().map(|parameters| (info.label(&parameters), parameters))
}

const MATRICES: [&str; 5] = [
    "stencil5[n=60]",
    "stencil5[n=60,values=ones]",
    "powerlaw[rows=4500,cols=10000,entries=30000,longest=4500]",
    "uniform[rows=1000,cols=100000,entries=20000]",
    "uniform[rows=70000,cols=50,entries=10000]",
];

/// Conversions in which each row searches all triplets.
const ROW_SCANS: [&str; 3] = ["coo-to-csr-row-scan", "coo-to-ell-padded", "coo-to-ell-unpadded"];

/// One test only: others would allocate beside it.
#[test]
fn no_plan_and_no_conversion_allocates_more_than_its_budget() {
    let threads = Threads::new(3);
    rayon::broadcast(|_| threads.run(|_| {}));
    let mut faults = Vec::new();
    for name in MATRICES {
        let a: Csr<f64> = generate::named(name).unwrap().generate().unwrap();
        let with = |budget| PlanOptions { threads: threads.clone(), budget };
        let (x, mut y) = (vec![1.0; a.cols()], vec![0.0; a.rows()]);
        for kernel in spmv::registry::<f64>() {
            for (label, parameters) in variants(&kernel.info) {
                let y = RefCell::new(&mut y);
                faults.extend(check(&format!("spmv {label} {name}"), &kernel.info, |budget| {
                    let plan = kernel.plan(a.view(), &parameters, &with(budget))?;
                    plan.run(&x, &mut y.borrow_mut()).unwrap();
                    Ok(())
                }));
            }
        }
        for (k, layout) in [(1, Layout::RowMajor), (6, Layout::RowMajor), (6, Layout::ColumnMajor)]
        {
            for kernel in spmm::registry::<f64>() {
                for (label, parameters) in variants(&kernel.info) {
                    let label = format!("spmm {label} k={k} {layout:?} {name}");
                    faults.extend(check(&label, &kernel.info, |budget| {
                        let (options, dense) = (with(budget), DenseShape { k, layout });
                        kernel.plan(a.view(), dense, &parameters, &options).map(drop)
                    }));
                }
            }
        }
        let output = RefCell::new(TransposeOutput::new(a.cols(), a.nnz()));
        for kernel in transpose::registry::<f64>() {
            for (label, parameters) in variants(&kernel.info) {
                faults.extend(check(
                    &format!("transpose {label} {name}"),
                    &kernel.info,
                    |budget| {
                        let mut plan = kernel.plan(a.view(), &parameters, &with(budget))?;
                        plan.run(&mut output.borrow_mut()).unwrap();
                        Ok(())
                    },
                ));
            }
        }
        let sorted = convert::csr_to_coo(a.view());
        let by_column = convert::csc_to_coo(convert::csr_to_csc(a.view()).view());
        for (order, coo) in [("sorted", &sorted), ("by column", &by_column)] {
            let input = ConversionInput { coo, csr: a.view() };
            for kernel in convert::registry::<f64>() {
                // Those that take rows x entries steps have a small matrix among the others.
                if ROW_SCANS.contains(&kernel.info.id) && a.rows() > 1000 {
                    continue;
                }
                for (label, parameters) in variants(&kernel.info) {
                    faults.extend(check(
                        &format!("{label} {order} {name}"),
                        &kernel.info,
                        |budget| {
                            kernel.plan(input, &parameters, &budget)?.run().map(drop)?;
                            Ok(())
                        },
                    ));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

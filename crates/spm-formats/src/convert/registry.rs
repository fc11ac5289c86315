//! The registry of conversions: those of R4, and the default ones.

use std::fmt;

use super::coo_csr::{coo_to_csr, csr_to_coo};
use super::cost;
use super::csr_bsr::{block_pointers, csr_to_bsr};
use super::csr_csc::csr_to_csc;
use super::csr_ell::{EllOptions, csr_to_ell, extent};
use super::csr_hll::{count_elements, csr_to_hll};
use super::csr_sell::{csr_to_sell, order};
use super::row_scan::{coo_to_csr_row_scan, coo_to_ell_padded, coo_to_ell_unpadded, count_rows};
use super::single_pass::{coo_to_csr_single_pass, coo_to_ell_single_pass, open_row_bytes};
use super::via_csr::{
    bsr_to_coo, csc_to_coo, ell_to_coo, hll_to_coo, sell_to_coo, unpadded_ell_to_coo,
};
use crate::kernel::{
    self, Backend, Footprint, KernelInfo, Operation, ParameterSpec, Parameters, PlanError, Value,
};
use crate::{
    Bsr, Complex, Coo, Csc, Csr, CsrView, Ell, FormatError, Hll, Layout, MemoryBudget, Scalar,
    Sell, UnpaddedEll,
};

/// The largest rows x entries that the O(rows x entries) conversions accept: about half a second of
/// comparisons on one core.
pub const ROW_SCAN_LIMIT: u64 = 1 << 31;

/// One matrix in the two forms that conversions start from.
#[derive(Debug, Clone, Copy)]
pub struct ConversionInput<'a, T> {
    /// The triplets.
    pub coo: &'a Coo<T>,
    /// The same matrix as CSR.
    pub csr: CsrView<'a, T>,
}

/// A converted matrix.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Converted<T> {
    /// Compressed rows.
    Csr(Csr<T>),
    /// Compressed columns.
    Csc(Csc<T>),
    /// Padded ELLPACK.
    Ell(Ell<T>),
    /// ELLPACK without padding.
    UnpaddedEll(UnpaddedEll<T>),
    /// Hacked ELLPACK.
    Hll(Hll<T>),
    /// SELL-C-sigma.
    Sell(Sell<T>),
    /// Dense blocks.
    Bsr(Bsr<T>),
}

impl<T: Scalar> Converted<T> {
    /// The triplets, sorted.
    pub fn to_coo(&self) -> Coo<T> {
        match self {
            Self::Csr(csr) => csr_to_coo(csr.view()),
            Self::Csc(csc) => csc_to_coo(csc.view()),
            Self::Ell(ell) => ell_to_coo(ell),
            Self::UnpaddedEll(ell) => unpadded_ell_to_coo(ell),
            Self::Hll(hll) => hll_to_coo(hll),
            Self::Sell(sell) => sell_to_coo(sell),
            Self::Bsr(bsr) => bsr_to_coo(bsr),
        }
    }

    /// Bytes of all arrays.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Csr(csr) => csr.memory_bytes(),
            Self::Csc(csc) => csc.memory_bytes(),
            Self::Ell(ell) => ell.memory_bytes(),
            Self::UnpaddedEll(ell) => ell.memory_bytes(),
            Self::Hll(hll) => hll.memory_bytes(),
            Self::Sell(sell) => sell.memory_bytes(),
            Self::Bsr(bsr) => bsr.memory_bytes(),
        }
    }

    /// Number of stored entries.
    pub fn entries(&self) -> usize {
        match self {
            Self::Csr(csr) => csr.nnz(),
            Self::Csc(csc) => csc.nnz(),
            Self::Ell(ell) => ell.entries(),
            Self::UnpaddedEll(ell) => ell.entries(),
            Self::Hll(hll) => hll.entries(),
            Self::Sell(sell) => sell.entries(),
            Self::Bsr(bsr) => bsr.entries(),
        }
    }
}

type Run<'a, T> = Box<dyn Fn() -> Result<Converted<T>, FormatError> + Send + Sync + 'a>;

/// A conversion planned for one matrix.
pub struct ConversionPlan<'a, T> {
    footprint: Footprint,
    run: Run<'a, T>,
}

impl<T> fmt::Debug for ConversionPlan<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversionPlan").field("footprint", &self.footprint).finish_non_exhaustive()
    }
}

impl<T: Scalar> ConversionPlan<'_, T> {
    /// Bytes of the input plus bytes of the result, and of the result alone.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// Converts once, on the current rayon pool, allocating the result.
    ///
    /// # Errors
    /// None: planning has checked the input.
    pub fn run(&self) -> Result<Converted<T>, FormatError> {
        (self.run)()
    }
}

type PlanFn<T> = for<'a> fn(
    ConversionInput<'a, T>,
    &Parameters,
    &MemoryBudget,
) -> Result<ConversionPlan<'a, T>, PlanError>;

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct ConversionKernel<T> {
    /// Id, source and parameters.
    pub info: KernelInfo,
    plan: PlanFn<T>,
}

impl<T: Scalar> ConversionKernel<T> {
    /// Checks the parameters, the budget and, for the O(rows x entries) ones, [`ROW_SCAN_LIMIT`].
    ///
    /// # Errors
    /// [`PlanError::Format`] beyond the budget, [`PlanError::Unsupported`] beyond the limit and for
    /// parameters that are not those of this kernel.
    pub fn plan<'a>(
        &self,
        input: ConversionInput<'a, T>,
        parameters: &Parameters,
        budget: &MemoryBudget,
    ) -> Result<ConversionPlan<'a, T>, PlanError> {
        self.info.check_parameters(parameters)?;
        (self.plan)(input, parameters, budget)
    }
}

/// A conversion of triplets, the bytes that it takes and, for row scans, their limit.
macro_rules! of_triplets {
    (
        $info:ident, $format:ident($convert:ident), $bytes:ident,
        |$coo:ident, $longest:ident| $cost:expr $(, $check:ident)?
    ) => {
        ConversionKernel {
            info: $info,
            plan: |input, _, budget| {
                let ($coo, $longest) = (input.coo, longest(input));
                $($check($info.id, $coo)?;)?
                budget.check_bytes($info.id, u128::from($cost))?;
                Ok(from_coo(input, $bytes(input), |coo| Ok(Converted::$format($convert(coo)))))
            },
        }
    };
}

kernel::registry! {
    /// Every conversion, in the order of R4, then our own.
    ConversionKernel<T: Scalar>
    f32, f64, Complex<f32>, Complex<f64>: Scalar [
        of_triplets!(
            COO_TO_CSR_ROW_SCAN, Csr(coo_to_csr_row_scan), csr_bytes,
            |coo, longest| cost::row_scan(coo, longest), check_row_scan
        ),
        of_triplets!(
            COO_TO_CSR_SINGLE_PASS, Csr(coo_to_csr_single_pass), csr_bytes,
            |coo, longest| cost::single_pass(coo, longest)
        ),
        ConversionKernel { info: COO_TO_ELL_PADDED, plan: plan_ell_padded },
        of_triplets!(
            COO_TO_ELL_UNPADDED, UnpaddedEll(coo_to_ell_unpadded), unpadded_bytes,
            |coo, longest| cost::unpadded(coo, longest), check_row_scan
        ),
        of_triplets!(
            COO_TO_ELL_SINGLE_PASS, UnpaddedEll(coo_to_ell_single_pass), unpadded_bytes,
            |coo, longest| cost::unpadded_single_pass(coo, longest, open_row_bytes::<T>())
        ),
        of_triplets!(
            COO_TO_CSR, Csr(coo_to_csr), csr_bytes,
            |coo, longest| cost::coo_to_csr(coo, longest)
        ),
        ConversionKernel { info: CSR_TO_ELL, plan: plan_ell },
        ConversionKernel { info: CSR_TO_HLL, plan: plan_hll },
        ConversionKernel { info: CSR_TO_SELL, plan: plan_sell },
        ConversionKernel { info: CSR_TO_BSR, plan: plan_bsr },
        ConversionKernel { info: CSR_TO_CSC, plan: plan_csc },
    ]
}

const fn info(
    id: &'static str,
    source: &'static str,
    summary: &'static str,
    parameters: &'static [ParameterSpec],
) -> KernelInfo {
    let (operation, backend) = (Operation::Conversion, Backend::Cpu);
    KernelInfo { id, operation, backend, source, summary, parameters }
}

const COO_TO_CSR_ROW_SCAN: KernelInfo = info(
    "coo-to-csr-row-scan",
    "R4 3.1 (coo_to_CSR_parallel)",
    "every row searches all triplets, parallel over rows",
    &[],
);
const COO_TO_CSR_SINGLE_PASS: KernelInfo = info(
    "coo-to-csr-single-pass",
    "R4 3.1 (coo_to_CSR_parallel_optimization)",
    "one loop over the triplets with a cursor per row, parallel over triplets",
    &[],
);
const COO_TO_ELL_PADDED: KernelInfo = info(
    "coo-to-ell-padded",
    "R4 4.1 (coo_to_ellpack_parallel)",
    "every row searches all triplets, padded to the longest row",
    &[],
);
const COO_TO_ELL_UNPADDED: KernelInfo = info(
    "coo-to-ell-unpadded",
    "R4 4.1, second version",
    "every row searches all triplets, each row with arrays of its own length",
    &[],
);
const COO_TO_ELL_SINGLE_PASS: KernelInfo = info(
    "coo-to-ell-single-pass",
    "R4 4.1, third version",
    "one loop over the triplets with a cursor per row, unpadded",
    &[],
);
const COO_TO_CSR: KernelInfo =
    info("coo-to-csr", "own", "copy if sorted by row, else a stable counting sort", &[]);
const CSR_TO_ELL: KernelInfo = info(
    "csr-to-ell",
    "own; R0 2.3",
    "every row padded to the longest",
    &[
        ParameterSpec {
            name: "layout",
            meaning: "contiguous dimension: row-major or column-major",
            default: Value::Choice("row"),
            studied: &[Value::Choice("row"), Value::Choice("column")],
        },
        ParameterSpec {
            name: "align",
            meaning: "the pitch is a multiple of this many elements",
            default: Value::Count(1),
            studied: &[Value::Count(1), Value::Count(64)],
        },
    ],
);
const CSR_TO_HLL: KernelInfo = info(
    "csr-to-hll",
    "own; R2 III-B",
    "rows padded to the longest of their block",
    &[ParameterSpec {
        name: "hack",
        meaning: "rows of a block",
        default: Value::Count(32),
        studied: &[Value::Count(16), Value::Count(32), Value::Count(64), Value::Count(128)],
    }],
);
const CSR_TO_SELL: KernelInfo = info(
    "csr-to-sell",
    "own; Kreutzer et al. 2014",
    "rows sorted by length in windows, padded to the longest of their chunk",
    &[
        ParameterSpec {
            name: "chunk",
            meaning: "C: rows of a chunk",
            default: Value::Count(8),
            studied: &[Value::Count(8), Value::Count(32)],
        },
        ParameterSpec {
            name: "sigma",
            meaning: "rows of a sorting window",
            default: Value::Count(1024),
            studied: &[Value::Count(1), Value::Count(1024), Value::Count(65536)],
        },
    ],
);
const CSR_TO_BSR: KernelInfo = info(
    "csr-to-bsr",
    "own",
    "dense blocks of equal size, filled up with zeros",
    &[ParameterSpec {
        name: "block",
        meaning: "rows and columns of a block",
        default: Value::Grid(3, 3),
        studied: &[Value::Grid(3, 3), Value::Grid(2, 4), Value::Grid(8, 8)],
    }],
);
const CSR_TO_CSC: KernelInfo = info("csr-to-csc", "own", "a stable counting sort by column", &[]);

/// Refuses a matrix above [`ROW_SCAN_LIMIT`].
fn check_row_scan<T: Scalar>(kernel: &'static str, coo: &Coo<T>) -> Result<(), PlanError> {
    let comparisons = coo.rows() as u128 * coo.entries() as u128;
    if comparisons <= u128::from(ROW_SCAN_LIMIT) {
        return Ok(());
    }
    let reason = format!(
        "{} rows x {} entries are {comparisons} comparisons; the limit is {ROW_SCAN_LIMIT}",
        coo.rows(),
        coo.entries()
    );
    Err(PlanError::Unsupported { kernel, reason })
}

fn plan<'a, T: Scalar>(
    input_bytes: u64,
    matrix_bytes: u64,
    run: impl Fn() -> Result<Converted<T>, FormatError> + Send + Sync + 'a,
) -> ConversionPlan<'a, T> {
    let bytes_moved = input_bytes + matrix_bytes;
    let footprint = Footprint { bytes_moved, plan_bytes: 0, matrix_bytes };
    ConversionPlan { footprint, run: Box::new(run) }
}

fn from_coo<'a, T: Scalar>(
    input: ConversionInput<'a, T>,
    matrix_bytes: u64,
    run: impl Fn(&Coo<T>) -> Result<Converted<T>, FormatError> + Send + Sync + 'a,
) -> ConversionPlan<'a, T> {
    let coo = input.coo;
    plan(coo.memory_bytes(), matrix_bytes, move || run(coo))
}

/// Bytes of one index and one value for each entry or stored element.
fn entries_bytes<T: Scalar>(entries: usize) -> u64 {
    entries as u64 * (size_of::<u32>() + T::BYTES) as u64
}

/// Triplets of the longest row at most, duplicates counted.
fn longest<T: Scalar>(input: ConversionInput<'_, T>) -> usize {
    input.csr.width() + input.coo.entries().saturating_sub(input.csr.nnz())
}

fn csr_bytes<T: Scalar>(input: ConversionInput<'_, T>) -> u64 {
    cost::compressed::<T>(input.csr.rows(), input.csr.nnz())
}

fn unpadded_bytes<T: Scalar>(input: ConversionInput<'_, T>) -> u64 {
    UnpaddedEll::<T>::bytes_of(input.csr.rows(), input.csr.nnz())
}

fn plan_ell_padded<'a, T: Scalar>(
    input: ConversionInput<'a, T>,
    _: &Parameters,
    budget: &MemoryBudget,
) -> Result<ConversionPlan<'a, T>, PlanError> {
    let coo = input.coo;
    check_row_scan(COO_TO_ELL_PADDED.id, coo)?;
    budget.check_bytes(COO_TO_ELL_PADDED.id, (coo.rows() * size_of::<u32>()) as u128)?;
    let width = count_rows(coo).into_iter().max().unwrap_or(0) as usize;
    let (_, elements) =
        extent::<T>(coo.rows(), width, coo.entries(), EllOptions::ROW_MAJOR, budget)?;
    let bytes = entries_bytes::<T>(elements) + 4 * coo.rows() as u64;
    let scratch = cost::scratch(coo, width);
    budget.check("ell", coo.entries(), elements as u128, 0, (bytes + scratch) as usize)?;
    let budget = budget.clone();
    Ok(from_coo(input, bytes, move |coo| coo_to_ell_padded(coo, &budget).map(Converted::Ell)))
}

fn plan_ell<'a, T: Scalar>(
    input: ConversionInput<'a, T>,
    parameters: &Parameters,
    budget: &MemoryBudget,
) -> Result<ConversionPlan<'a, T>, PlanError> {
    let layout = match parameters.choice("layout") {
        "row" => Layout::RowMajor,
        _ => Layout::ColumnMajor,
    };
    let options = EllOptions { layout, pitch_alignment: parameters.count("align") };
    let matrix = input.csr;
    let (_, elements) = extent::<T>(matrix.rows(), matrix.width(), matrix.nnz(), options, budget)?;
    let bytes = entries_bytes::<T>(elements) + 4 * matrix.rows() as u64;
    let budget = budget.clone();
    let run = move || csr_to_ell(input.csr, options, &budget).map(Converted::Ell);
    Ok(plan(input.csr.memory_bytes(), bytes, run))
}

fn plan_csc<'a, T: Scalar>(
    input: ConversionInput<'a, T>,
    _: &Parameters,
    budget: &MemoryBudget,
) -> Result<ConversionPlan<'a, T>, PlanError> {
    let (cols, entries) = (input.csr.cols(), input.csr.nnz());
    budget.check_bytes(CSR_TO_CSC.id, cost::counting_sort::<T>(cols, entries).into())?;
    let run = move || Ok(Converted::Csc(csr_to_csc(input.csr)));
    Ok(plan(input.csr.memory_bytes(), cost::compressed::<T>(cols, entries), run))
}

fn plan_hll<'a, T: Scalar>(
    input: ConversionInput<'a, T>,
    parameters: &Parameters,
    budget: &MemoryBudget,
) -> Result<ConversionPlan<'a, T>, PlanError> {
    let hack_size = parameters.count("hack");
    let matrix = input.csr;
    let elements = count_elements(&matrix, hack_size, budget)?;
    let blocks = matrix.rows().div_ceil(hack_size);
    let bytes = entries_bytes::<T>(elements) + 4 * matrix.rows() as u64 + 8 * (blocks as u64 + 1);
    let budget = budget.clone();
    let run = move || csr_to_hll(input.csr, hack_size, &budget).map(Converted::Hll);
    Ok(plan(input.csr.memory_bytes(), bytes, run))
}

fn plan_sell<'a, T: Scalar>(
    input: ConversionInput<'a, T>,
    parameters: &Parameters,
    budget: &MemoryBudget,
) -> Result<ConversionPlan<'a, T>, PlanError> {
    let (chunk, sigma) = (parameters.count("chunk"), parameters.count("sigma"));
    let matrix = input.csr;
    let elements = order(&matrix, chunk, sigma, budget)?.elements;
    let chunks = matrix.rows().div_ceil(chunk);
    let bytes = entries_bytes::<T>(elements) + 8 * matrix.rows() as u64 + 8 * (chunks as u64 + 1);
    let budget = budget.clone();
    let run = move || csr_to_sell(input.csr, chunk, sigma, &budget).map(Converted::Sell);
    Ok(plan(input.csr.memory_bytes(), bytes, run))
}

fn plan_bsr<'a, T: Scalar>(
    input: ConversionInput<'a, T>,
    parameters: &Parameters,
    budget: &MemoryBudget,
) -> Result<ConversionPlan<'a, T>, PlanError> {
    let (block, matrix) = (parameters.grid("block"), input.csr);
    let block_ptr = block_pointers(&matrix, block, budget)?;
    let blocks = block_ptr.last().map_or(0, |&blocks| blocks as usize);
    let elements = blocks * block.0.saturating_mul(block.1);
    let padding = elements - matrix.nnz();
    let bytes = 4 * (block_ptr.len() + blocks) + elements * T::BYTES + padding * size_of::<usize>();
    let budget = budget.clone();
    let run = move || csr_to_bsr(input.csr, block, &budget).map(Converted::Bsr);
    Ok(plan(input.csr.memory_bytes(), bytes as u64, run))
}

//! What in the hardware makes a statement hold, or not hold here.

use super::findings::Verdict;

const BANDWIDTH: &str = "SpMV does 2 operations per 12 bytes or more, so once the cores in use \
                         fill the memory channels, further threads only wait.";
const BLOCKS: &str = "The block size only changes how many warps an SM holds; from a few hundred \
                      threads on there are enough of them to hide memory latency, at every size.";
const PADDING: &str = "ELLPACK reads its padding, so its time follows the longest row, CSR's the \
                       entries; only where rows are about equally long does the regular layout pay.";
const COALESCED: &str = "Column-major ELLPACK and HLL let the threads of a warp read neighbouring \
                         words; a warp that walks CSR rows wastes lanes on short rows and sectors \
                         on rows of different lengths.";
const GATHER: &str = "The time goes into reading x through the column indices; a wider reduction \
                      helps only where the operands already lie in cache.";

/// The reason, empty for a statement that nothing of ours measures.
pub(super) fn why(id: &str, verdict: Verdict) -> &'static str {
    let holds = verdict != Verdict::Contradicts;
    match id {
        "r0-chunk" if holds => {
            "A thousand rows outlast the atomic increment that hands out a chunk by far."
        }
        "r0-chunk" => {
            "Where rows differ in length a chunk decides whether the last thread waits, and small \
             chunks cost an atomic access each."
        }
        "r0-best-threads" | "r2-peak-threads" | "r2-hll-peak-threads" => BANDWIDTH,
        "r0-block-flat" | "r2-gpu-csr-block" | "r2-gpu-hll-block" if holds => BLOCKS,
        "r0-block-flat" => {
            "Short-running kernels feel the tail: large blocks are handed to an SM only when it \
             has room for all their warps at once."
        }
        "r2-gpu-csr-block" | "r2-gpu-hll-block" | "r0-block-128" => {
            "A block leaves the SM when its slowest warp ends, so smaller blocks free their place \
             sooner where rows differ; where they do not, every size does."
        }
        "r0-threads-by-size" | "r2-small-peak" if holds => {
            "Waking and joining threads costs microseconds, which a small matrix does not earn \
             back; it also fits into the caches of few cores."
        }
        "r0-threads-by-size" | "r2-small-peak" => {
            "With few cores, or a thread pool that is kept awake, even a small matrix gains from \
             all of them."
        }
        "r0-cpu-csr-over-ell" => PADDING,
        "r0-ell-refused" | "r1-ell-limit" => {
            "One row of 10⁴ to 10⁵ entries makes every row that long: the padding alone would not \
             fit into memory."
        }
        "r0-gpu-ell-over-csr" | "r2-gpu-hll-over-csr" => COALESCED,
        "r0-gpu-over-cpu" => {
            "The GPU's memory is several times as fast, but a launch costs microseconds: below \
             some ten thousand entries the CPU has the result before the kernel starts."
        }
        "r0-bandwidth" | "r0-peak" => {
            "The printed figure is the data sheet's; ours is what a copy of the same run reached. \
             SpMV scales with it, whatever the device."
        }
        "r0-intensity" => {
            "8 bytes of value and 4 of index per entry bound it from above; row pointers, x and y \
             lower it, most where rows are short."
        }
        "r0-half-peak" if holds => {
            "Gathered reads of x and short rows leave part of every memory sector unused."
        }
        "r0-half-peak" => {
            "A large L2 that keeps x, or the whole matrix, on the chip pulls the mean up; rows \
             shorter than a warp, and padding, pull it down."
        }
        "r1-simd" | "r1-simd-gain" => GATHER,
        "r1-row-lengths-cpu" => {
            "Stopping at a row's end saves the reads of its padding; where rows are equally long \
             there is nothing to save and one array more to read."
        }
        "r1-row-lengths-gpu" if holds => {
            "A warp runs as long as its longest row anyway, so lengths save little and cost a read \
             and a divergent exit."
        }
        "r1-row-lengths-gpu" => {
            "Whole warps whose rows are short stop early and skip the padding's traffic, which is \
             worth more than the read of a length."
        }
        "r1-grid" | "r2-cpu-hack" => {
            "The best cut depends on where the entries lie: it has to even out the work without \
             tearing apart what shares a cache line of x."
        }
        "r1-static" | "r1-static-gain" => {
            "Even rows need no balancing, and a static cut keeps each core on the same pages and \
             cache lines from product to product; uneven rows turn that around."
        }
        "r1-block-192" | "r1-block-384" | "r1-block-256" => BLOCKS,
        "r1-best-csr-0" | "r1-best-csr-1" => {
            "A thread per row suits rows of a few entries, a warp per row those with at least a \
             warp's width; so the share is a matter of which matrices are in the set."
        }
        "r1-best-ell-0" => COALESCED,
        "r1-best-ell-1" => {
            "Row-major ELLPACK with a thread per row makes neighbouring threads read words a whole \
             row apart: every access is a sector of its own."
        }
        "r1-best-ell-2" => {
            "A warp per row reads coalesced, padding included, and so trails CSR with a warp per \
             row unless rows are equally long."
        }
        "r1-max-gflops" => "GFLOPS of SpMV follow the memory bandwidth of the device.",
        "r2-efficiency-falls" => BANDWIDTH,
        "r2-superlinear" if holds => {
            "Two cores have two private caches: the part of x that each needs fits where all of it \
             did not."
        }
        "r2-superlinear" => {
            "The serial product is not slower than it must be here: compiled with the same \
             optimisation and timed by the same clock, it already uses its share of the bandwidth."
        }
        "r2-cage4" => "49 entries take less time than the clock's step or a thread's waking.",
        "r2-cpu-csr-over-hll" => PADDING,
        "r2-roadnet-100" => {
            "The ratio of the GPU's bandwidth to that of one CPU core, and a serial product that \
             waits for cache misses of x."
        }
        "r2-gpu-hack" => {
            "Once reads are coalesced the hack only changes the padding; on the CPU it also \
             decides how far apart the entries of a row lie."
        }
        "r3-scan-speedup" | "r3-cusparse1-speedup" | "r3-cusparse2-speedup" => {
            "With copies and allocation in the clock the bus decides, not the kernel; the ratio \
             also follows the CPU that the serial one ran on."
        }
        "r3-merge-slower" | "r3-scan-over-merge" => {
            "MergeTrans moves all entries once per merge level, logarithmically many times; \
             ScanTrans moves them once, but needs a counter per column and part."
        }
        "r3-random" => {
            "The serial transposition of a random matrix misses the cache at every entry, which \
             makes the baseline slow, not ScanTrans fast."
        }
        "r3-sort-block" | "r3-merge-block" | "r3-histogram-block" | "r3-expand-block" => {
            "The block size trades shared memory per block against blocks per SM; both limits \
             differ between device generations."
        }
        "r4-tolerance" => {
            "The rounding error of a sum grows with its terms: one unit round-off is the bound of \
             a single operation, so rows of many entries exceed it without being wrong."
        }
        "r4-coo-to-csr" | "r4-coo-to-ell" => {
            "A scan of all entries for each row is rows × entries work; one pass with a cursor per \
             row is linear."
        }
        "r4-static" => {
            "Contiguous chunks of 16 doubles are whole cache lines of Y, so threads do not share \
             any."
        }
        "r4-block-512" => BLOCKS,
        "r4-v2-over-v1" if holds => {
            "A sum in memory is a read and a write per term; a register costs neither."
        }
        "r4-v2-over-v1" => "The L1 cache absorbs the repeated reads and writes of one address.",
        "r4-v3-over-v2" => {
            "Row bounds read in the loop's condition are read again at every term unless the \
             compiler proves that nothing writes to them; where it does, both are the same code."
        }
        "r4-warp-slower" => {
            "With fewer entries in a row than lanes in a warp most lanes idle, and the reduction \
             costs five steps for each element of Y."
        }
        "r4-subwarp" => {
            "The best number of lanes per element follows the row length: two suit rows of a few \
             entries."
        }
        "r4-adaptive" => {
            "One element per block reads the row again for each of the k columns; a warp that \
             keeps a row for all k reads it once."
        }
        "r4-ell-memory" | "r4-ell-unpadded" => PADDING,
        _ => "",
    }
}

//! The vertical scans of the transpositions on the emulator, with more chunks, pieces and parts than the
//! entries of a test matrix make: as many that each warp has several, and more than it loads at once.

use spm_gpu_kernels::emulator::{Emulator, EmulatorOptions};
use spm_gpu_kernels::transpose::*;

const SCAN_BLOCK: u32 = SCAN_WARPS * 32;
/// What stands where a chunk has no count.
const ABSENT: u32 = 1_000_000;

/// 1 to 9, in no order.
fn count(row: u32, column: u32) -> u32 {
    (row * 7919 + column * 104_729 + 13) % 65_521 % 9 + 1
}

fn emulator() -> Emulator {
    Emulator::new(EmulatorOptions { seed: 1, ..EmulatorOptions::default() })
}

/// Counts of `rows` x `width` where `inside` holds, what the scan of the rows makes of them, and the total
/// of each column.
fn scanned(
    rows: std::ops::Range<u32>,
    width: u32,
    inside: impl Fn(u32, u32) -> bool,
) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let (mut counts, mut expected) = (Vec::new(), Vec::new());
    let mut totals = vec![0; width as usize];
    for row in rows {
        for column in 0..width {
            let there = inside(row, column);
            counts.push(if there { count(row, column) } else { ABSENT });
            let total = &mut totals[column as usize];
            expected.push(if there { *total } else { ABSENT });
            *total += if there { count(row, column) } else { 0 };
        }
    }
    (counts, expected, totals)
}

/// `window` gives the first bucket of a chunk, and one after the last.
fn check_buckets(chunks: u32, buckets: u32, window: impl Fn(u32) -> [u32; 2]) {
    let emulator = emulator();
    let inside = |chunk, bucket| (window(chunk)[0]..window(chunk)[1]).contains(&bucket);
    let (counts, expected, totals) = scanned(0..chunks, buckets, inside);
    let windows: Vec<u32> = (0..chunks).flat_map(&window).collect();
    let (inter, windows) = (emulator.alloc_from(&counts), emulator.alloc_from(&windows));
    let starts = emulator.alloc_zeroed::<u32>(buckets as usize + 1);
    let (ticket, chunk_rows) = (emulator.alloc_zeroed::<u32>(1), emulator.alloc_zeroed::<u32>(1));
    let args = BucketScan {
        chunks,
        buckets,
        digits: buckets,
        mask: u32::MAX,
        windows: windows.ptr(),
        inter: inter.ptr_mut(),
        starts: starts.ptr_mut(),
        ticket: ticket.ptr_mut(),
        rows: 0,
        chunk: 1,
        row_ptr: windows.ptr(),
        chunk_rows: chunk_rows.ptr_mut(),
    };
    let launched =
        emulator.launch::<BucketScan>(buckets.div_ceil(32), SCAN_BLOCK, bucket_scan_bytes(), args);
    launched.unwrap();
    assert!(inter.to_vec() == expected, "{chunks} chunks, {buckets} buckets");
    let mut start = 0;
    for (bucket, total) in totals.iter().enumerate() {
        assert_eq!(starts.to_vec()[bucket], start, "{chunks} chunks, bucket {bucket}");
        start += total;
    }
    assert_eq!(starts.to_vec()[buckets as usize], start);
}

#[test]
fn chunks_with_all_buckets() {
    for chunks in [1, 31, 33, 300, 1100] {
        check_buckets(chunks, 96, |_| [0, 96]);
    }
}

#[test]
fn chunks_with_a_window_of_buckets() {
    for chunks in [1, 31, 33, 300, 1100] {
        check_buckets(chunks, 90, |chunk| {
            let first = chunk * 80 / chunks;
            [first, (first + 1 + chunk % 23).min(90)]
        });
    }
}

#[test]
fn pieces_of_large_buckets() {
    let (width, bounds) = (100, [0, 1, 8, 300]);
    for short in [false, true] {
        let emulator = emulator();
        let (mut counts, mut expected, mut totals) = (Vec::new(), Vec::new(), Vec::new());
        let mut large = Vec::new();
        for pair in bounds.windows(2) {
            let (c, e, t) = scanned(pair[0]..pair[1], width, |_, _| true);
            counts.extend(c);
            expected.extend(e);
            totals.extend(t);
            large.extend([0, pair[0], pair[1], 0]);
        }
        let (inter, large) = (emulator.alloc_from(&counts), emulator.alloc_from(&large));
        let sums = emulator.alloc_zeroed::<u32>(totals.len());
        let (inter_ptr, sums_ptr) = (inter.ptr_mut(), sums.ptr_mut());
        let (buckets, strips) = (bounds.len() as u32 - 1, width.div_ceil(32));
        let launched = if short {
            let args = PieceScanShort {
                width,
                buckets,
                large: large.ptr(),
                inter: inter_ptr,
                totals: sums_ptr,
            };
            emulator.launch::<PieceScanShort>((buckets * strips).div_ceil(2), 64, 0, args)
        } else {
            let args = PieceScan { width, large: large.ptr(), inter: inter_ptr, totals: sums_ptr };
            emulator.launch::<PieceScan>((buckets, strips), SCAN_BLOCK, bucket_scan_bytes(), args)
        };
        launched.unwrap();
        assert!(inter.to_vec() == expected && sums.to_vec() == totals, "short: {short}");
    }
}

/// Rows that a block scans in one round, and in several.
#[test]
fn rows_of_parts() {
    const BLOCK: u32 = 32;
    for width in [1, 4 * BLOCK, 8 * BLOCK + 1, 15 * BLOCK + 3] {
        let emulator = emulator();
        let (mut counts, mut expected, mut totals) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..3 {
            let mut total = 0;
            for part in 0..width {
                counts.push(count(row, part));
                expected.push(total);
                total += count(row, part);
            }
            totals.push(total);
        }
        let (matrix, sums) = (emulator.alloc_from(&counts), emulator.alloc_zeroed::<u32>(3));
        let args = VerticalScanRows { width, matrix: matrix.ptr_mut(), totals: sums.ptr_mut() };
        let bytes = vertical_scan_rows_bytes();
        emulator.launch::<VerticalScanRows>(3, BLOCK, bytes, args).unwrap();
        assert!(matrix.to_vec() == expected && sums.to_vec() == totals, "{width} parts");
    }
}

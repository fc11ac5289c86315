//! `csr-segmented-sum`, from CSR to the product: as many stored elements as its plan takes, 2^31, at
//! the end of more rows than that.

use spm_gpu_kernels::convert::*;
use spm_gpu_kernels::spmv::*;

use crate::tail::*;

#[test]
fn marks_and_ranks_of_rows() {
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        let (row_ptr, ..) = tail.csr();
        let marks = tail.emulator.alloc_from(&vec![9_u32; ROWS as usize]);
        let rows = tail.rows();
        let grid = over(rows.into(), ROWS.into(), 64);
        let args =
            SegmentRowMarks { rows, row_ptr: far(&row_ptr, row), marks: far_mut(&marks, row) };
        launch_last::<SegmentRowMarks>(&tail.emulator, grid, 64, 0, args);
        let expected: Vec<u32> = tail.lengths.iter().map(|&length| u32::from(length > 0)).collect();
        assert_eq!(marks.to_vec(), expected);
        let mut rank = entry;
        let ranks: Vec<u32> = expected
            .iter()
            .map(|mark| {
                rank += mark;
                rank - mark
            })
            .collect();
        marks.write(&ranks);
        let row_ids = tail.emulator.alloc_from(&vec![0_u32; (rank - entry) as usize]);
        let args = SegmentRows {
            rows,
            row_ptr: far(&row_ptr, row),
            ranks: far(&marks, row),
            row_ids: far_mut(&row_ids, entry),
        };
        launch_last::<SegmentRows>(&tail.emulator, grid, 64, 0, args);
        let filled: Vec<u32> =
            (row..rows).filter(|r| tail.lengths[(r - row) as usize] > 0).collect();
        assert_eq!(row_ids.to_vec(), filled);
    }
}

/// One row with all entries but those of the tail comes before it: row ends are few, blocks many.
macro_rules! product {
    ($entries:literal, $stored:ident, $single:ident, $equal:ident) => {
        for row in [1_u32 << 31, 0xf7ff_f000] {
            let per_block = SEGMENT_THREADS * $entries;
            let lengths: Vec<u32> = (0..ROWS).map(|row| row * 7 % 31).collect();
            let sum: u32 = lengths.iter().sum();
            // The tail begins inside of a block, and fills the stored elements that there are.
            let blocks = (1_u32 << 31) / per_block - 1;
            let entry = blocks * per_block - sum - 3;
            let mut tail = Tail::of(row, entry, lengths, 1);
            let emulator = tail.emulator.clone();
            let entries = tail.entries();
            let first_block = (entry - 1) / per_block;
            let last_blocks = blocks - first_block;
            let alloc = |words: &[u32]| emulator.alloc_from(words);
            let row_ptr = alloc(&[&[0][..], &tail.row_ptr()].concat());
            let row_ptr = far(&row_ptr, u64::from(row) - 1);
            let filled = (0..ROWS).filter(|&r| tail.lengths[r as usize] > 0).map(|r| row + r);
            let row_ids: Vec<u32> = [row - 1].into_iter().chain(filled).collect();
            let count = row_ids.len() as u32;
            let row_ids = alloc(&row_ids);
            let (listed, step, log_entries) = (1, per_block, u32::ilog2($entries));

            let headers = emulator.alloc_zeroed::<[u32; 4]>(blocks as usize + 1);
            let args = SegmentHeaders {
                blocks,
                log_entries,
                step,
                slack: 0,
                entries,
                count,
                listed,
                row_ids: row_ids.ptr(),
                row_ptr,
                headers: headers.ptr_mut(),
            };
            let grid = over(u64::from(blocks) + 1, u64::from(last_blocks) + 1, 1);
            launch_last::<SegmentHeaders>(&emulator, grid, 1, 0, args);
            let warp_ranks = emulator.alloc_zeroed::<u32>(8 * blocks as usize);
            let args = SegmentRanks {
                blocks,
                warp_entries: 32 * $entries,
                count,
                listed,
                row_ids: row_ids.ptr(),
                row_ptr,
                headers: headers.ptr(),
                warp_ranks: warp_ranks.ptr_mut(),
            };
            let grid = over(8 * u64::from(blocks), 8 * u64::from(last_blocks), 8);
            launch_last::<SegmentRanks>(&emulator, grid, 8, 0, args);
            let flags = emulator.alloc_zeroed::<u32>((blocks * SEGMENT_THREADS / 2) as usize);
            let args = SegmentFlags {
                count,
                log_entries,
                step,
                listed,
                row_ids: row_ids.ptr(),
                row_ptr,
                headers: headers.ptr(),
                flags: flags.ptr_mut(),
            };
            emulator.launch::<SegmentFlags>(count.div_ceil(64), 64, 0, args).unwrap();

            // The entries of the one long row that the last blocks have.
            let before = first_block * per_block;
            let own = (entry - before) as usize;
            let columns = [vec![0; own], tail.columns.clone()].concat();
            let values = [vec![1.0; own], tail.values.clone()].concat();
            let (columns, values) = (alloc(&columns), emulator.alloc_from(&values));
            let elements = blocks * per_block;
            let elements_here = (last_blocks * per_block) as usize;
            let to_columns = emulator.alloc_from(&vec![u32::MAX; elements_here]);
            let stored = emulator.alloc_from(&vec![f64::NAN; elements_here]);
            let single = emulator.alloc_from(&vec![f32::NAN; elements_here]);
            let grid = over(elements.into(), elements_here as u64, 256);
            let args = SegmentEntries {
                elements,
                log_entries,
                with_values: 1,
                headers: headers.ptr(),
                col_ind: far(&columns, before),
                values: far(&values, before),
                to_columns: far_mut(&to_columns, before),
                to_values: far_mut(&stored, before),
            };
            launch_last::<SegmentEntries<f64>>(&emulator, grid, 256, 0, args);
            let args = SegmentEntriesSingle {
                elements,
                log_entries,
                headers: headers.ptr(),
                col_ind: far(&columns, before),
                values: far(&values, before),
                to_columns: far_mut(&to_columns, before),
                to_values: far_mut(&single, before),
            };
            launch_last::<SegmentEntriesSingle<f64>>(&emulator, grid, 256, 0, args);

            let parts = emulator.alloc_zeroed::<f64>(2 * blocks as usize);
            let arrivals = emulator.alloc_zeroed::<u64>(blocks as usize);
            macro_rules! check {
                ($kernel:ident, $field:ident: $value:expr) => {{
                    let y = emulator.alloc_from(&vec![0.0; ROWS as usize]);
                    let args = $kernel {
                        listed,
                        row_ids: row_ids.ptr(),
                        headers: headers.ptr(),
                        warp_ranks: warp_ranks.ptr(),
                        flags: flags.ptr(),
                        col_ind: far(&to_columns, before),
                        $field: $value,
                        x: tail.x_buffer.ptr(),
                        parts: parts.ptr_mut(),
                        arrivals: arrivals.ptr_mut(),
                        y: far_mut(&y, row).into(),
                    };
                    let shared = csr_segmented_sum_shared_bytes::<f64>($entries);
                    let grid = (blocks, last_blocks.into());
                    launch_last::<$kernel<f64>>(&emulator, grid, SEGMENT_THREADS, shared, args);
                    tail.check_y::<$kernel<f64>>(&y, 1);
                }};
            }
            check!($stored, values: far(&stored, before));
            check!($single, values: far(&single, before));
            tail.values.fill(2.0);
            check!($equal, value: 2.0);
        }
    };
}

#[test]
fn four_entries_of_a_thread() {
    product!(4, CsrSegmentedSum4, CsrSegmentedSum4Single, CsrSegmentedSum4Equal);
}

#[test]
fn eight_entries_of_a_thread() {
    product!(8, CsrSegmentedSum8, CsrSegmentedSum8Single, CsrSegmentedSum8Equal);
}

//! Conversions from CSR, and what decides between formats.

use spm_gpu_kernels::convert::*;

use crate::tail::*;

/// HLL and SELL-C-sigma: lengths, widths of blocks, offsets, stored elements beyond 2^36.
#[test]
fn padded_formats() {
    const HEIGHT: u32 = 32;
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        let emulator = &tail.emulator;
        let (row_ptr, columns, values) = tail.csr();
        let rows = tail.rows();
        let threads = over(rows.into(), ROWS.into(), 64);
        let order: Vec<u32> = (row..rows).rev().collect();
        let order_buffer = emulator.alloc_from(&order);
        let words = |length: u32| emulator.alloc_from(&vec![0_u32; length as usize]);

        let (keys, numbers) = (words(ROWS), words(ROWS));
        let args = LengthKeys {
            rows,
            longest: 9,
            row_ptr: far(&row_ptr, row),
            keys: far_mut(&keys, row),
            numbers: far_mut(&numbers, row),
        };
        launch_last::<LengthKeys>(emulator, threads, 64, 0, args);
        let shortness: Vec<u32> = tail.lengths.iter().map(|length| 9 - length).collect();
        assert_eq!(keys.to_vec(), shortness);
        assert_eq!(numbers.to_vec(), (row..rows).collect::<Vec<_>>());
        let args = WindowKeys {
            rows,
            sigma: 7,
            order: far(&order_buffer, row),
            keys: far_mut(&keys, row),
        };
        launch_last::<WindowKeys>(emulator, threads, 64, 0, args);
        assert_eq!(keys.to_vec(), order.iter().map(|row| row / 7).collect::<Vec<_>>());

        let (lengths, moved) = (words(ROWS), words(1));
        let args = RowLengths {
            rows,
            sorted: 1,
            order: far(&order_buffer, row),
            row_ptr: far(&row_ptr, row),
            lengths: far_mut(&lengths, row),
            moved: moved.ptr_mut(),
        };
        launch_last::<RowLengths>(emulator, threads, 64, 0, args);
        let sorted: Vec<u32> = tail.lengths.iter().rev().copied().collect();
        assert_eq!(lengths.to_vec(), sorted);
        assert_eq!(moved.to_vec(), [ROWS.div_ceil(32)]);

        // A warp for each block, of which 32 bits number 2^27.
        let blocks = rows.div_ceil(HEIGHT);
        let before = row / HEIGHT;
        let count = blocks - before;
        let widths = words(count + 1);
        let args = BlockWidths {
            rows,
            blocks,
            height: HEIGHT,
            lengths: far(&lengths, row),
            widths: far_mut(&widths, before),
        };
        let grid = over(blocks.into(), count.into(), 1);
        launch_last::<BlockWidths>(emulator, grid, 32, 0, args);
        let widest: Vec<u32> = sorted
            .chunks(HEIGHT as usize)
            .map(|block| block.iter().copied().max().unwrap())
            .collect();
        assert_eq!(widths.to_vec()[..count as usize], widest);

        let mut start = entry;
        let mut starts = vec![start];
        for width in &widest {
            start += width;
            starts.push(start);
        }
        let starts_buffer = emulator.alloc_from(&starts);
        let offsets = emulator.alloc_from(&vec![0_u64; starts.len()]);
        let last_height = rows - (blocks - 1) * HEIGHT;
        let args = BlockOffsets {
            blocks,
            height: HEIGHT,
            last_height,
            starts: far(&starts_buffer, before),
            offsets: far_mut(&offsets, before),
        };
        launch_last::<BlockOffsets>(emulator, grid, 1, 0, args);
        let height = u64::from(HEIGHT);
        let mut expected: Vec<u64> =
            starts.iter().map(|&start| u64::from(start) * height).collect();
        let last = starts.len() - 1;
        expected[last] = expected[last - 1] + u64::from(widest[last - 1] * last_height);
        assert_eq!(offsets.to_vec(), expected);

        // Both ways to end: as many lanes as rows, or whole blocks.
        let first_element = expected[0];
        for (lanes, filled) in [(rows, 0_u32), (blocks * HEIGHT, 1)] {
            let elements = ((starts[last] - starts[0]) * HEIGHT) as usize;
            let to_columns = emulator.alloc_from(&vec![u32::MAX; elements]);
            let to_values = emulator.alloc_from(&vec![f64::NAN; elements]);
            let args = PaddedElements {
                rows,
                lanes,
                height: HEIGHT,
                filled,
                sorted: 1,
                order: far(&order_buffer, row),
                row_ptr: far(&row_ptr, row),
                col_ind: far(&columns, entry),
                values: far(&values, entry),
                starts: far(&starts_buffer, before),
                to_columns: far_mut(&to_columns, first_element),
                to_values: far_mut(&to_values, first_element),
            };
            let grid = over(lanes.into(), (lanes - row).into(), 64);
            launch_last::<PaddedElements<f64>>(emulator, grid, 64, 0, args);
            let (columns, values) = (to_columns.to_vec(), to_values.to_vec());
            let ends = tail.pointers_from(0);
            for (position, &row) in order.iter().enumerate() {
                let block = position / HEIGHT as usize;
                let lane = position % HEIGHT as usize;
                let last_block = block == last - 1 && filled == 0;
                let stride = if last_block { last_height } else { HEIGHT } as usize;
                let at = (expected[block] - first_element) as usize + lane;
                let source = ends[(row - tail.first_row) as usize] as usize;
                for s in 0..widest[block] as usize {
                    let inside = s < tail.lengths[(row - tail.first_row) as usize] as usize;
                    let value = if inside { tail.values[source + s] } else { 0.0 };
                    assert_eq!(values[at + s * stride], value);
                    if inside {
                        assert_eq!(columns[at + s * stride], tail.columns[source + s]);
                    }
                }
            }
        }
    }
}

/// A block that visits a share of 2^31 rows, and one of as many values.
#[test]
fn statistics() {
    let (row, blocks) = (1_u32 << 31, 1024_u32);
    let tail = Tail::new(row, 7);
    let emulator = &tail.emulator;
    let row_ptr = emulator.alloc_zeroed::<u32>(tail.rows() as usize + 1);
    // All of the earlier entries are in one row of another block's, and the rows of the tail are those that the last block
    // sees at last.
    let place = row - SURVEY_BLOCK;
    row_ptr.write_at(place as usize, &tail.pointers_from(0));
    let end = tail.pointers_from(0)[ROWS as usize];
    row_ptr.write_at((place + ROWS) as usize, &vec![end; (row - place) as usize + 1]);
    // Before the pairs of the values is one of the first of them.
    let seen = emulator.alloc_from(&vec![[u32::MAX; 2]; blocks as usize + 1]);
    let columns = emulator.alloc_zeroed::<u32>(0);
    // As many values in single precision, one of which differs.
    let values = emulator.alloc_zeroed::<f32>(row as usize);
    values.write_at(row as usize - 5, &[0.5]);
    let of_rows = Survey {
        rows: tail.rows(),
        entries: row,
        pattern_blocks: 0,
        distinct_blocks: 0,
        sample_blocks: 0,
        row_blocks: blocks,
        sizes: 0,
        row_ptr: row_ptr.ptr(),
        col_ind: columns.ptr(),
        values: values.ptr(),
        seen: seen.ptr_mut(),
    };
    let shared = survey_shared_bytes();
    launch_last::<Survey<f32>>(emulator, (blocks, 1), SURVEY_BLOCK, shared, of_rows);
    let [longest, empty] = seen.to_vec()[blocks as usize - 1];
    assert_eq!(longest, *tail.lengths.iter().max().unwrap());
    let filled = tail.lengths.iter().filter(|length| **length > 0).count() as u32;
    assert_eq!(empty, row / blocks - filled);

    let of_values = Survey { row_blocks: 0, ..of_rows };
    launch_last::<Survey<f32>>(emulator, (blocks, 1), SURVEY_BLOCK, shared, of_values);
    assert_eq!(seen.to_vec()[blocks as usize], [1, 0]);
}

/// A warp for each row, of which 32 bits number 2^27, and entries near 2^32.
#[test]
fn column_blocks() {
    let (row, col_blocks) = ((1_u32 << 27) - ROWS, 3);
    let block_cols = COLS.div_ceil(col_blocks);
    for entry in [7_u32, 0xf7ff_0000] {
        let tail = Tail::ascending(row, entry);
        let (row_ptr, columns, values) = tail.csr();
        let rows = tail.rows();
        let words = (col_blocks - 1) * rows + ROWS;
        let uninit = || tail.emulator.try_alloc_uninit::<u32>(words as usize).unwrap();
        let (first_entries, counts) = (uninit(), uninit());
        let args = ColumnBlockCounts {
            rows,
            block_cols,
            col_blocks,
            row_ptr: far(&row_ptr, row),
            col_ind: far(&columns, entry),
            first_entries: far_mut(&first_entries, row),
            counts: far_mut(&counts, row),
        };
        let grid = (rows, ROWS.into());
        launch_last::<ColumnBlockCounts>(&tail.emulator, grid, 32, 0, args);
        // The quads of each row, one at least, behind those of the entries before.
        let first = entry.next_multiple_of(4);
        let (mut places, mut expected) = (Vec::new(), Vec::new());
        for block in 0..col_blocks {
            let inside = |column| column / block_cols == block;
            let (mut starts, mut quads) = (Vec::new(), Vec::new());
            for row in row..rows {
                let start = expected.len();
                starts.push((first + start as u32) / 4);
                let of_row = tail.triplets().filter(|&(r, c, _)| r == row && inside(c));
                expected.extend(of_row.map(|(_, column, value)| (column % block_cols, value)));
                let end = expected.len().next_multiple_of(4).max(start + 4);
                expected.resize(end, (block_cols, 0.0));
                quads.push((end - start) as u32 / 4);
            }
            let at = (block * rows) as usize;
            assert_eq!(counts.read_at(at, ROWS as usize), quads);
            places.push((at, starts));
        }
        let count = expected.len();
        let expected_offsets: Vec<u16> =
            expected.iter().map(|&(column, _)| column as u16).collect();
        for (at, starts) in &places {
            counts.write_at(*at, starts);
        }
        macro_rules! entries {
            ($kernel:ident $(, $t:ident)?) => {{
                let offsets = tail.emulator.alloc_from(&vec![u16::MAX; count]);
                $(let to_values = tail.emulator.alloc_from(&vec![$t::NAN; count]);)?
                let args = $kernel {
                    rows,
                    block_cols,
                    col_blocks,
                    row_ptr: far(&row_ptr, row),
                    col_ind: far(&columns, entry),
                    $(values: entries!(@if $t far(&values, entry)),)?
                    first_entries: far(&first_entries, row),
                    starts: far(&counts, row),
                    col_offsets: far_mut(&offsets, first),
                    $(to_values: entries!(@if $t far_mut(&to_values, first)),)?
                };
                launch_last::<entries!(@of $kernel $($t)?)>(&tail.emulator, grid, 32, 0, args);
                assert_eq!(offsets.to_vec(), expected_offsets);
                $(
                    let values: Vec<$t> = expected.iter().map(|&(_, value)| value as $t).collect();
                    assert_eq!(to_values.to_vec(), values);
                )?
            }};
            (@if $t:ident $value:expr) => { $value };
            (@of $kernel:ident) => { $kernel };
            (@of $kernel:ident $t:ident) => { $kernel<f64> };
        }
        entries!(ColumnBlockEntries, f64);
        entries!(ColumnBlockEntriesSingle, f32);
        entries!(ColumnBlockColumns);
    }
}

/// Parts near 2^30 with one quad or two, and those of the groups that begin in them.
#[test]
fn ends_of_column_blocks() {
    let first = (1_u32 << 30) - 128;
    let emulator = emulator();
    // From the last group before 2^30 quads on.
    let starts: Vec<u32> = (0..=60).map(|part| first + part + part / 20).collect();
    let (ends, firsts) = (emulator.alloc_zeroed::<u32>(3), emulator.alloc_from(&[u32::MAX; 3]));
    let part = first - 1000;
    let starts_buffer = emulator.alloc_from(&starts);
    let args = ColumnBlockEnds {
        parts: part + 60,
        starts: far(&starts_buffer, part),
        ends: far_mut(&ends, first / 32),
        firsts: far_mut(&firsts, first / 32),
    };
    launch_last::<ColumnBlockEnds>(&emulator, over((part + 60).into(), 60, 1), 1, 0, args);
    let (mut expected, mut of_groups) = ([0_u32; 3], [u32::MAX; 3]);
    for (i, bounds) in starts.windows(2).enumerate() {
        for quad in bounds[0]..bounds[1] {
            let group = (quad / 32 - first / 32) as usize;
            expected[group] |= u32::from(quad + 1 == bounds[1]) << (quad % 32);
            if quad % 32 == 0 {
                of_groups[group] = part + i as u32;
            }
        }
    }
    assert_eq!((ends.to_vec(), firsts.to_vec()), (expected.to_vec(), of_groups.to_vec()));
}

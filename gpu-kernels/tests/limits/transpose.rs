//! The procedures that transpositions are made of, over more than 2^31 elements.

use spm_gpu_kernels::emulator::EmuBuffer;
use spm_gpu_kernels::transpose::*;

use crate::tail::*;

/// Elements before those that are looked at.
const BEFORE: [u32; 2] = [1 << 31, 0xf7ff_f000];
/// Elements that are looked at.
const LAST: u32 = 300;

/// Small numbers in no order.
fn words(length: u32, below: u32) -> Vec<u32> {
    (0..length).map(|i| (i * 7919 + 13) % 65_521 % below).collect()
}

#[test]
fn scans() {
    const BLOCK: u32 = 32;
    for before in BEFORE {
        let emulator = emulator();
        let input = words(LAST, 9);
        let data = emulator.alloc_from(&input);
        let length = before + LAST;
        let grid = over(length.into(), LAST.into(), u64::from(2 * BLOCK));
        let pieces = grid.1 as usize;
        let first_piece = before / (2 * BLOCK);
        let totals = emulator.alloc_from(&vec![0_u32; pieces]);
        let blocks = ScanBlocks {
            length,
            data: far_mut(&data, before),
            totals: far_mut(&totals, first_piece),
        };
        launch_last::<ScanBlocks>(&emulator, grid, BLOCK, scan_blocks_bytes(BLOCK), blocks);
        let sum = |words: &[u32]| words.iter().sum::<u32>();
        let of_pieces: Vec<u32> = input.chunks(2 * BLOCK as usize).map(sum).collect();
        assert_eq!(totals.to_vec(), of_pieces);
        // What the pieces before add up to, near 2^32: the last sums wrap.
        let starts: Vec<u32> =
            (0..pieces).map(|i| sum(&of_pieces[..i]).wrapping_add(0xffff_ff00)).collect();
        let add = ScanAdd {
            length,
            before: far(&emulator.alloc_from(&starts), first_piece),
            data: far_mut(&data, before),
        };
        // The buffer of the starts is gone: an error, not what lies there.
        let gone = emulator.with_last_blocks(grid.1).launch::<ScanAdd>(grid.0, BLOCK, 0, add);
        assert!(gone.unwrap_err().to_string().contains("freed"));
        let starts = emulator.alloc_from(&starts);
        let add = ScanAdd { before: far(&starts, first_piece), ..add };
        launch_last::<ScanAdd>(&emulator, grid, BLOCK, 0, add);
        let expected: Vec<u32> =
            (0..LAST as usize).map(|i| sum(&input[..i]).wrapping_add(0xffff_ff00)).collect();
        assert_eq!(data.to_vec(), expected);
    }
}

#[test]
fn histograms_and_their_scans() {
    const WIDTH: u32 = 100;
    for before in BEFORE {
        let emulator = emulator();
        let input = words(LAST, WIDTH);
        let indices = emulator.alloc_from(&input);
        let keys: Vec<u64> = input.iter().map(|&i| u64::from(i) << 32 | 0x8765_4321).collect();
        let keys = emulator.alloc_from(&keys);
        let part = 64;
        let (length, parts) = (before + LAST, LAST.div_ceil(part));
        let grid = over(length.into(), LAST.into(), part.into());
        let far_counts = u64::from(before / part) * u64::from(WIDTH);
        let mut expected = vec![0_u32; (parts * WIDTH) as usize];
        for (i, &index) in (0_u32..).zip(&input) {
            expected[(i / part * WIDTH + index) as usize] += 1;
        }
        let counts = emulator.alloc_zeroed(expected.len());
        let to = far_mut(&counts, far_counts);
        let args =
            Histogram { length, part, width: WIDTH, indices: far(&indices, before), counts: to };
        launch_last::<Histogram>(&emulator, grid, 32, 0, args);
        assert_eq!(counts.to_vec(), expected);
        let counts = emulator.alloc_zeroed(expected.len());
        let to = far_mut(&counts, far_counts);
        let args =
            HistogramOfKeys { length, part, width: WIDTH, keys: far(&keys, before), counts: to };
        launch_last::<HistogramOfKeys>(&emulator, grid, 32, 0, args);
        assert_eq!(counts.to_vec(), expected);

        // A row for each column of the counts, as many as a grid has blocks.
        let rows = before.min(i32::MAX as u32 - parts);
        let totals = emulator.alloc_from(&vec![0_u32; parts as usize]);
        let args = VerticalScanRows {
            width: WIDTH,
            matrix: far_mut(&counts, u64::from(rows) * u64::from(WIDTH)),
            totals: far_mut(&totals, rows),
        };
        let grid = (rows + parts, parts.into());
        launch_last::<VerticalScanRows>(&emulator, grid, 32, vertical_scan_rows_bytes(), args);
        check_scanned(&expected, WIDTH as usize, &counts, &totals);

        // A column for each thread, one row of them; then two rows that a host has room for.
        for (height, width) in [(1_u32, length), (2, (1 << 28) + LAST)] {
            let first = width - LAST;
            let matrix = emulator.alloc_zeroed((width * (height - 1) + LAST) as usize);
            (0..height).for_each(|row| matrix.write_at((row * width) as usize, &input));
            let totals = emulator.alloc_from(&vec![0_u32; LAST as usize]);
            let args = VerticalScanColumns {
                height,
                width,
                matrix: far_mut(&matrix, first),
                totals: far_mut(&totals, first),
            };
            let grid = over(width.into(), LAST.into(), 8);
            launch_last::<VerticalScanColumns>(&emulator, grid, 8, 0, args);
            let sums: Vec<u32> = input.iter().map(|&word| word * height).collect();
            assert_eq!(totals.to_vec(), sums);
            let last = matrix.read_at((width * (height - 1)) as usize, LAST as usize);
            let before_last: Vec<u32> = input.iter().map(|&word| word * (height - 1)).collect();
            assert_eq!(last, before_last);
        }
    }
}

fn check_scanned(input: &[u32], width: usize, rows: &EmuBuffer<u32>, totals: &EmuBuffer<u32>) {
    let (rows, totals) = (rows.to_vec(), totals.to_vec());
    for (r, row) in input.chunks(width).enumerate() {
        let mut sum = 0;
        for (c, value) in row.iter().enumerate() {
            assert_eq!(rows[r * width + c], sum);
            sum += value;
        }
        assert_eq!(totals[r], sum);
    }
}

/// The last tile of a matrix of 2^33 elements.
#[test]
fn dense_transposition() {
    let (height, width) = ((1_u32 << 21) - 1, (1_u32 << 12) - 5);
    let (top, left) = (height / DENSE_TILE * DENSE_TILE, width / DENSE_TILE * DENSE_TILE);
    let emulator = emulator();
    let at = |row: u32, column: u32| row * 5 + column * 3;
    let (high, wide) = (height - top, width - left);
    let matrix = emulator.alloc_zeroed((high * width) as usize);
    let transposed = emulator.alloc_zeroed((u64::from(wide) * u64::from(height)) as usize);
    for row in 0..high {
        let words: Vec<u32> = (0..wide).map(|column| at(row, column)).collect();
        matrix.write_at((row * width) as usize, &words);
    }
    let place = |row: u32, columns: u32, column: u32| {
        u64::from(row) * u64::from(columns) + u64::from(column)
    };
    let args = TransposeDense {
        height,
        width,
        matrix: far(&matrix, place(top, width, left)),
        transposed: far_mut(&transposed, place(left, height, top)),
    };
    let grid = (width.div_ceil(DENSE_TILE), height.div_ceil(DENSE_TILE));
    let shared = transpose_dense_bytes();
    // Grids have less than 2^16 blocks in y.
    assert!(emulator.launch::<TransposeDense>(grid, (32, 8), shared, args).is_err());
    let grid = (grid.0, 65_535);
    let (top, height) = (65_534 * DENSE_TILE, 65_534 * DENSE_TILE + high);
    let args = TransposeDense {
        height,
        matrix: far(&matrix, place(top, width, left)),
        transposed: far_mut(&transposed, place(left, height, top)),
        ..args
    };
    launch_last::<TransposeDense>(&emulator, (grid, 1), (32, 8), shared, args);
    for column in 0..wide {
        let expected: Vec<u32> = (0..high).map(|row| at(row, column)).collect();
        let found =
            transposed.read_at((u64::from(column) * u64::from(height)) as usize, high as usize);
        assert_eq!(found, expected);
    }
}

/// The last rows, and the entries of rows that a block takes after its first: one more step would
/// wrap to a row that was done.
#[test]
fn pointers_to_index() {
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        let indices = tail.emulator.alloc_from(&vec![0_u32; tail.values.len()]);
        // The last blocks of the grid take a row without entries first, then one of the tail.
        let rows = tail.rows();
        let grid = rows.div_ceil(2);
        let first = row - grid;
        let pointers = tail.emulator.alloc_zeroed::<u32>((row - first + ROWS + 1) as usize);
        pointers.write_at((row - first) as usize, &tail.row_ptr());
        let args = PointersToIndex {
            rows,
            row_ptr: far(&pointers, first),
            indices: far_mut(&indices, entry),
        };
        launch_last::<PointersToIndex>(&tail.emulator, (grid, ROWS.into()), 32, 0, args);
        let expected: Vec<u32> = tail.triplets().map(|(row, ..)| row).collect();
        assert_eq!(indices.to_vec(), expected);
    }
}

#[test]
fn keys_and_what_they_gather() {
    for before in BEFORE {
        let emulator = emulator();
        let columns = words(LAST, 50);
        let keys = emulator.alloc_from(&vec![0_u64; LAST as usize]);
        let device_columns = emulator.alloc_from(&columns);
        let entries = before + LAST;
        let grid = over(entries.into(), LAST.into(), 8);
        let args =
            Keys { entries, col_ind: far(&device_columns, before), keys: far_mut(&keys, before) };
        launch_last::<Keys>(&emulator, grid, 8, 0, args);
        let mut sorted = keys.to_vec();
        let expected: Vec<u64> = columns
            .iter()
            .zip(before..)
            .map(|(&column, k)| u64::from(column) << 32 | u64::from(k))
            .collect();
        assert_eq!(sorted, expected);
        sorted.sort_unstable();
        keys.write(&sorted);
        let rows: Vec<u32> = (0..LAST).map(|k| k * 3).collect();
        let values: Vec<f64> = rows.iter().map(|&row| f64::from(row) + 0.5).collect();
        let (from_rows, from_values) = (emulator.alloc_from(&rows), emulator.alloc_from(&values));
        let to_rows = emulator.alloc_from(&vec![0_u32; LAST as usize]);
        let to_values = emulator.alloc_from(&vec![0.0_f64; LAST as usize]);
        let args = Gather {
            entries,
            keys: far(&keys, before),
            rows: far(&from_rows, before),
            values: far(&from_values, before),
            row_ind: far_mut(&to_rows, before),
            sorted_values: far_mut(&to_values, before),
        };
        launch_last::<Gather<f64>>(&emulator, grid, 8, 0, args);
        let order = sorted.iter().map(|&key| (key as u32 - before) as usize);
        let gathered: Vec<u32> = order.clone().map(|k| rows[k]).collect();
        assert_eq!(to_rows.to_vec(), gathered);
        assert_eq!(to_values.to_vec(), order.map(|k| values[k]).collect::<Vec<_>>());
        let to_rows = emulator.alloc_from(&vec![0_u32; LAST as usize]);
        let args = GatherPattern {
            entries,
            keys: far(&keys, before),
            rows: far(&from_rows, before),
            row_ind: far_mut(&to_rows, before),
        };
        launch_last::<GatherPattern>(&emulator, grid, 8, 0, args);
        assert_eq!(to_rows.to_vec(), gathered);
    }
}

/// Segments of 32, of which pairs are merged in shared memory; of 128, merged in pieces; the last
/// segments have fewer keys.
#[test]
fn sorts_and_merges() {
    const BLOCK: u32 = 32;
    for before in BEFORE {
        let emulator = emulator();
        let input: Vec<u64> =
            words(LAST, 40).iter().zip(0..).map(|(&k, i)| u64::from(k) << 32 | i).collect();
        let sorted_by = |segment: usize| {
            let mut keys = input.clone();
            keys.chunks_mut(segment).for_each(<[u64]>::sort_unstable);
            keys
        };
        let length = before + LAST;
        let keys = emulator.alloc_from(&input);
        let sorted = emulator.alloc_from(&vec![0_u64; LAST as usize]);
        let sort =
            SegmentedSort { length, keys: far(&keys, before), sorted: far_mut(&sorted, before) };
        let grid = over(length.into(), LAST.into(), BLOCK.into());
        launch_last::<SegmentedSort>(&emulator, grid, BLOCK, segmented_sort_bytes(BLOCK), sort);
        assert_eq!(sorted.to_vec(), sorted_by(32));
        let merge = MergeSmall {
            length,
            segment: BLOCK,
            keys: far(&sorted, before),
            sorted: far_mut(&keys, before),
        };
        let grid = over(length.into(), LAST.into(), u64::from(2 * BLOCK));
        launch_last::<MergeSmall>(&emulator, grid, BLOCK, merge_bytes(BLOCK), merge);
        assert_eq!(keys.to_vec(), sorted_by(64));

        let (segment, distance) = (128, 16);
        keys.write(&sorted_by(segment as usize));
        let grid = over(length.into(), LAST.into(), distance.into());
        let first = before / distance;
        let cuts = emulator.alloc_from(&vec![0_u32; 2 * grid.1 as usize]);
        let splitters = MergeSplitters {
            length,
            segment,
            distance,
            keys: far(&keys, before),
            cuts: far_mut(&cuts, 2 * u64::from(first)),
        };
        let threads = over(length.div_ceil(distance).into(), grid.1, 8);
        launch_last::<MergeSplitters>(&emulator, threads, 8, 0, splitters);
        let pieces = MergePieces {
            length,
            segment,
            distance,
            cuts: far(&cuts, 2 * u64::from(first)),
            keys: far(&keys, before),
            sorted: far_mut(&sorted, before),
        };
        launch_last::<MergePieces>(&emulator, grid, distance, merge_bytes(distance), pieces);
        assert_eq!(sorted.to_vec(), sorted_by(256));
    }
}

/// Runs of entries of one row and column.
#[test]
fn duplicates() {
    for (row, entry) in PLACES {
        let mut tail = Tail::new(row, entry);
        tail.columns.iter_mut().for_each(|column| *column /= 20);
        let (pointers, columns, values) = tail.csr();
        let (entries, count) = (tail.entries(), tail.values.len() as u32);
        let marks = tail.emulator.alloc_from(&vec![7_u32; count as usize + 1]);
        let grid = over(u64::from(entries) + 1, u64::from(count) + 1, 8);
        let args =
            MarkColumns { entries, columns: far(&columns, entry), marks: far_mut(&marks, entry) };
        // The first entry is compared with the one before it: the tail's begins elsewhere.
        let before = tail.emulator.alloc_from(&[&[u32::MAX][..], &tail.columns].concat());
        let args = MarkColumns { columns: far(&before, u64::from(entry) - 1), ..args };
        launch_last::<MarkColumns>(&tail.emulator, grid, 8, 0, args);
        let of_rows = MarkRows {
            rows: tail.rows(),
            row_ptr: far(&pointers, row),
            marks: far_mut(&marks, entry),
        };
        let rows = over(tail.rows().into(), ROWS.into(), 128);
        launch_last::<MarkRows>(&tail.emulator, rows, 128, 0, of_rows);
        let triplets: Vec<_> = tail.triplets().collect();
        let is_first = |k: usize| {
            k == 0 || triplets[k].0 != triplets[k - 1].0 || triplets[k].1 != triplets[k - 1].1
        };
        let mut expected: Vec<u32> = (0..triplets.len()).map(|k| is_first(k).into()).collect();
        expected.push(0);
        assert_eq!(marks.to_vec(), expected);

        let mut place = entry;
        let places: Vec<u32> = expected
            .iter()
            .map(|mark| {
                place += mark;
                place - mark
            })
            .collect();
        let places_buffer = tail.emulator.alloc_from(&places);
        let distinct = (place - entry) as usize;
        let to_columns = tail.emulator.alloc_from(&vec![0_u32; distinct]);
        let sums = tail.emulator.alloc_from(&vec![0.0_f64; distinct]);
        let args = SumDuplicates {
            entries,
            places: far(&places_buffer, entry),
            columns: far(&columns, entry),
            values: far(&values, entry),
            distinct_columns: far_mut(&to_columns, entry),
            sums: far_mut(&sums, entry),
        };
        let grid = over(entries.into(), count.into(), 8);
        launch_last::<SumDuplicates<f64>>(&tail.emulator, grid, 8, 0, args);
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for (k, &(_, column, value)) in triplets.iter().enumerate() {
            if is_first(k) {
                columns.push(column);
                values.push(0.0);
            }
            let last = values.len() - 1;
            values[last] += value;
        }
        assert_eq!((to_columns.to_vec(), sums.to_vec()), (columns, values));
        let pointers_left = tail.emulator.alloc_from(&vec![0_u32; ROWS as usize + 1]);
        let args = DistinctPointers {
            rows: tail.rows(),
            row_ptr: far(&pointers, row),
            places: far(&places_buffer, entry),
            distinct: far_mut(&pointers_left, row),
        };
        let rows = over(u64::from(tail.rows()) + 1, u64::from(ROWS) + 1, 8);
        launch_last::<DistinctPointers>(&tail.emulator, rows, 8, 0, args);
        let left: Vec<u32> =
            tail.row_ptr().iter().map(|&end| places[(end - entry) as usize]).collect();
        assert_eq!(pointers_left.to_vec(), left);
    }
}

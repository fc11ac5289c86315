//! Kernels of Y = A X.

use spm_gpu_kernels::spmm::*;

use crate::spmv::csr;
use crate::tail::*;

/// Elements of X and Y, two columns side by side.
const PAIRS: Strides = Strides { row: 2, column: 1 };

/// Elements of Y that 32 bits number, 2^31 of them and more.
#[test]
fn csr_spmm() {
    let strides = PAIRS;
    let far_pointers = far_mut::<u32>;
    for (row, entry) in [(1 << 30, 0xf7ff_0000), ((1 << 31) - 2048, 5)] {
        let tail = Tail::new(row, entry);
        macro_rules! check {
            ($name:ident, $shape:expr, $shared:expr, $row_ptr:ident $(, $field:ident: $value:expr)*) => {
                csr!(tail, $name<f64>, $name, 2, $shape, $shared,
                    { k: 2, x_strides: strides, y_strides: strides $(, $field: $value)* }, $row_ptr)
            };
        }
        check!(CsrThreadPerElementV1, (256, (256, 1)), 0, far_pointers);
        check!(CsrThreadPerElementV2, (256, (256, 1)), 0, far_pointers);
        check!(CsrThreadPerElementV3, (256, (256, 1)), 0, far);
        let shared = shared_sum_bytes::<f64>(1024);
        check!(CsrSubwarpPerElement, (256, (1024, 1)), shared, far, lanes: 4);
        check!(CsrWarpPerElement, (32, (1024, 1)), shared, far);
        // A grid over rows.
        let (row_ptr, columns) = (tail.row_ptr(), &tail.columns);
        let row_ptr = tail.emulator.alloc_from(&row_ptr);
        let columns = tail.emulator.alloc_from(columns);
        let values = tail.emulator.alloc_from(&tail.values);
        let entry = u64::from(entry);
        // Items are elements of Y: 2 of them for each of 32 rows.
        tail.check::<CsrWarpPerRow<f64>>(2, (64, (1024, 1)), shared, |tail, x, y| CsrWarpPerRow {
            rows: tail.rows(),
            k: 2,
            row_ptr: far(&row_ptr, u64::from(row)),
            col_ind: far(&columns, entry),
            values: far(&values, entry),
            x,
            x_strides: strides,
            y: y.into(),
            y_strides: strides,
        });
    }
}

/// A padded row of ELLPACK for each row.
#[test]
fn ell_spmm() {
    const WIDTH: u32 = 4;
    let tail = Tail::new((1 << 31) - 2048, 0);
    let row = tail.first_row;
    let elements = (ROWS * WIDTH) as usize;
    let (mut columns, mut values) = (vec![0_u32; elements], vec![0.0; elements]);
    let mut entry = 0;
    for (row, &length) in tail.lengths.iter().enumerate() {
        for element in 0..length as usize {
            columns[row * WIDTH as usize + element] = tail.columns[entry];
            values[row * WIDTH as usize + element] = tail.values[entry];
            entry += 1;
        }
    }
    let lengths = tail.emulator.alloc_from(&tail.lengths);
    let (columns, values) = (tail.emulator.alloc_from(&columns), tail.emulator.alloc_from(&values));
    let before = u64::from(row) * u64::from(WIDTH);
    macro_rules! check {
        ($kernel:ident, $shape:expr, $shared:expr $(, $field:ident: $value:expr)*) => {
            for padded in [0, 1] {
                tail.check::<$kernel<f64>>(2, $shape, $shared, |tail, x, y| $kernel {
                    rows: tail.rows(),
                    k: 2,
                    width: WIDTH,
                    pitch: WIDTH.into(),
                    padded,
                    row_lengths: far(&lengths, row),
                    col_ind: far(&columns, before),
                    values: far(&values, before),
                    x,
                    x_strides: PAIRS,
                    y: y.into(),
                    y_strides: PAIRS,
                    $($field: $value),*
                });
            }
        };
    }
    check!(EllThreadPerElement, (256, (256, 1)), 0);
    check!(EllSubwarpPerElement, (256, (1024, 1)), shared_sum_bytes::<f64>(1024), lanes: 4);
}

/// As many row blocks as a grid has blocks.
#[test]
fn csr_adaptive_spmm() {
    let block = 64;
    for (row, entry) in PLACES {
        let tail = Tail::of(row, entry, vec![3, 0, 40, 21, 90, 1, 64, 0, 2], 1);
        let (row_ptr, columns, values) = tail.csr();
        let row_blocks = [0, 4, 5, 6, 7, 9].map(|first| row + first);
        let count = row_blocks.len() as u32 - 1;
        let row_blocks = tail.emulator.alloc_from(&row_blocks);
        let y = tail.y(2);
        let grid = i32::MAX as u32 / 2 * 2;
        let before = grid / 2 - count;
        let args = CsrAdaptive {
            k: 2,
            row_blocks: far(&row_blocks, before),
            row_ptr: far(&row_ptr, row),
            col_ind: far(&columns, entry),
            values: far(&values, entry),
            x: tail.x_buffer.ptr(),
            x_strides: PAIRS,
            y: far_mut(&y, 2 * u64::from(row)).into(),
            y_strides: PAIRS,
        };
        // The sums of a block of threads in shared memory need 64 entries at most.
        let shared = csr_adaptive_bytes::<f64>(block);
        let last = (2 * count).into();
        launch_last::<CsrAdaptive<f64>>(&tail.emulator, (grid, last), block, shared, args);
        tail.check_y::<CsrAdaptive<f64>>(&y, 2);
        let y = tail.y(2);
        let before = i32::MAX as u32 - count;
        let args = CsrAdaptiveSubblocks {
            k: 2,
            lanes: 4,
            row_blocks: far(&row_blocks, before),
            row_ptr: far(&row_ptr, row),
            col_ind: far(&columns, entry),
            values: far(&values, entry),
            x: tail.x_buffer.ptr(),
            x_strides: PAIRS,
            y: far_mut(&y, 2 * u64::from(row)).into(),
            y_strides: PAIRS,
        };
        let shared = csr_adaptive_subblocks_bytes::<f64>(block);
        let grid = (before + count, count.into());
        launch_last::<CsrAdaptiveSubblocks<f64>>(&tail.emulator, grid, block, shared, args);
        tail.check_y::<CsrAdaptiveSubblocks<f64>>(&y, 2);
    }
}

/// A group of lanes for each row; then for each chunk of long rows.
#[test]
fn csr_row_split() {
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        let (row_ptr, columns, values) = tail.csr();
        macro_rules! rows {
            ($kernel:ident, $column_lanes:literal) => {
                let lanes = $column_lanes * 2;
                let y = tail.y(2);
                let args = $kernel {
                    rows: tail.rows(),
                    entries: tail.entries(),
                    k: 2,
                    column_lanes: $column_lanes,
                    entry_lanes: 2,
                    split: u32::MAX,
                    chunks: 0,
                    chunk_bounds: far(&tail.emulator.alloc_from(&[[0_u32; 2]]), 0_u64),
                    partial: far_mut(&y, 0_u64),
                    row_ptr: far(&row_ptr, row),
                    col_ind: far(&columns, entry),
                    values: far(&values, entry),
                    x: tail.x_buffer.ptr(),
                    y: far_mut(&y, 2 * u64::from(row)).into(),
                    y_strides: PAIRS,
                };
                let grid = over(tail.rows().into(), ROWS.into(), 256 / lanes);
                launch_last::<$kernel<f64>>(&tail.emulator, grid, 256, 0, args);
                tail.check_y::<$kernel<f64>>(&y, 2);
            };
        }
        rows!(CsrRowSplit1, 2);
        rows!(CsrRowSplit2, 1);
        rows!(CsrRowSplit4, 1);

        // Each row of the tail is a chunk, the last of billions, and then a row that was cut.
        let bounds: Vec<_> = tail.row_ptr().windows(2).map(|pair| [pair[0], pair[1]]).collect();
        let bounds = tail.emulator.alloc_from(&bounds);
        let partial = tail.emulator.alloc_from(&vec![f64::NAN; 2 * ROWS as usize]);
        let chunks = tail.rows();
        let args = CsrRowSplit2 {
            rows: 0,
            entries: tail.entries(),
            k: 2,
            column_lanes: 1,
            entry_lanes: 2,
            split: 0,
            chunks,
            chunk_bounds: far(&bounds, row),
            partial: far_mut(&partial, 2 * u64::from(row)),
            row_ptr: far(&row_ptr, row),
            col_ind: far(&columns, entry),
            values: far(&values, entry),
            x: tail.x_buffer.ptr(),
            y: far_mut(&partial, 0_u64).into(),
            y_strides: PAIRS,
        };
        let grid = over(chunks.into(), ROWS.into(), 128);
        launch_last::<CsrRowSplit2<f64>>(&tail.emulator, grid, 256, 0, args);
        tail.check_y::<CsrRowSplit2<f64>>(&partial, 2);
        let before = i32::MAX as u32 - ROWS;
        let rows: Vec<u32> = (row..=tail.rows()).collect();
        let rows = tail.emulator.alloc_from(&rows);
        let y = tail.y(2);
        let args = SplitSum {
            k: 2,
            split_rows: far(&rows, before),
            row_chunks: far(&rows, before),
            partial: far(&partial, 2 * u64::from(row)),
            y: far_mut(&y, 2 * u64::from(row)).into(),
            y_strides: PAIRS,
        };
        let (grid, shared) = ((i32::MAX as u32, ROWS.into()), split_sum_bytes::<f64>());
        launch_last::<SplitSum<f64>>(&tail.emulator, grid, SPLIT_SUM_BLOCK, shared, args);
        tail.check_y::<SplitSum<f64>>(&y, 2);
    }
}

/// A group of lanes for each row and some columns of an X that lies column by column.
#[test]
fn csr_vector() {
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        let (row_ptr, columns, values) = tail.csr();
        let x = tail.x_by_column();
        let none = tail.emulator.alloc_from(&[[0_u32; 2]; 0]);
        macro_rules! check {
            ($kernel:ident, $lanes:literal, $row:expr) => {
                let y = tail.y(2);
                let args = $kernel {
                    rows: $row + ROWS,
                    cols: COLS,
                    k: 2,
                    lanes: $lanes,
                    split: u32::MAX,
                    chunks: 0,
                    chunk_bounds: none.ptr(),
                    partial: far_mut(&y, 0_u64),
                    row_ptr: far(&row_ptr, $row),
                    col_ind: far(&columns, entry),
                    values: far(&values, entry),
                    x: x.ptr(),
                    y: far_mut(&y, 2 * u64::from($row)).into(),
                    y_strides: PAIRS,
                };
                let grid = over(u64::from($row + ROWS), ROWS.into(), 256 / $lanes);
                launch_last::<$kernel<f64>>(&tail.emulator, grid, 256, 0, args);
                tail.check_y::<$kernel<f64>>(&y, 2);
            };
        }
        check!(CsrVector2, 1, row);
        check!(CsrVector4, 1, row);
        check!(CsrVector8, 1, row);
        // Less than 2^32 threads.
        check!(CsrVector2, 8, (1_u32 << 28) - 512);
    }
}

/// Billions of items; some of their rows are parts of rows, behind those of the matrix.
#[test]
fn csr_nonzero_split() {
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        let (row_ptr, columns, values) = tail.csr();
        let ends = tail.row_ptr();
        let items: Vec<_> = (0..ROWS as usize)
            .step_by(4)
            .map(|at| [ends[at], ends[at + 4], row + at as u32, row + at as u32 + 4])
            .collect();
        let count = items.len() as u32;
        let items = tail.emulator.alloc_from(&items);
        let parts: Vec<_> =
            (0..ROWS).map(|at| (ends[at as usize], ends[at as usize + 1], row + at)).collect();
        let parts: Vec<_> = parts.iter().map(|&(from, to, at)| [from, to, at, at + 1]).collect();
        let parts = tail.emulator.alloc_from(&parts);
        let none = tail.emulator.alloc_from(&[0.0_f64; 0]);
        macro_rules! check {
            ($kernel:ident, $lanes:literal) => {
                for (items, count, rows) in [(&items, count, tail.rows()), (&parts, ROWS, row)] {
                    let y = tail.y(2);
                    // Groups of `lanes` threads, of which 32 bits number 2^32 / lanes.
                    let before = (u32::MAX - (1 << 27)) / $lanes / 256 * 256;
                    // In the second round all rows are parts, and `partial` is what is looked at.
                    let part = rows == row;
                    let [to_y, to_partial] =
                        [!part, part].map(|used| if used { &y } else { &none });
                    let args = $kernel {
                        rows,
                        entries: tail.entries(),
                        k: 2,
                        lanes: $lanes,
                        item_count: before + count,
                        items: far(items, before),
                        row_ptr: far(&row_ptr, row),
                        col_ind: far(&columns, entry),
                        values: far(&values, entry),
                        x: tail.x_buffer.ptr(),
                        partial: far_mut(to_partial, 0_u64),
                        y: far_mut(to_y, 2 * u64::from(row)).into(),
                    };
                    let grid = over((before + count).into(), count.into(), 256 / $lanes);
                    launch_last::<$kernel<f64>>(&tail.emulator, grid, 256, 0, args);
                    tail.check_y::<$kernel<f64>>(&y, 2);
                }
            };
        }
        check!(CsrNonzeroSplit1, 2);
        check!(CsrNonzeroSplit2, 1);
        check!(CsrNonzeroSplit4, 1);
    }
}

/// Tiles and parts of long rows, as many as a grid has blocks.
#[test]
fn csr_stream() {
    const BLOCK: u32 = 32;
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        let (row_ptr, columns, values) = tail.csr();
        let ends = tail.row_ptr();
        let tiles: Vec<_> = (0..ROWS as usize)
            .step_by(4)
            .map(|at| [ends[at], ends[at + 4], row + at as u32, row + at as u32 + 4])
            .collect();
        let blocks = i32::MAX as u32;
        // Each row is a part, and the long row that it is of.
        let first_part = blocks - ROWS;
        let number = |at: u32| first_part + at;
        let parts: Vec<_> =
            (0..ROWS).map(|at| [ends[at as usize], ends[at as usize + 1], number(at), 0]).collect();
        let long: Vec<_> = (0..ROWS).map(|at| [row + at, number(at), number(at) + 1, 0]).collect();
        let long = tail.emulator.alloc_from(&long);
        macro_rules! check {
            ($kernel:ident, $lanes:literal, $columns:literal) => {
                for (items, parts) in [(&tiles, 0), (&parts, blocks)] {
                    let (y, count) = (tail.y(2), items.len() as u32);
                    let items = tail.emulator.alloc_from(items);
                    let plane = STREAM_AT_ONCE * BLOCK;
                    let args = $kernel {
                        rows: tail.rows(),
                        entries: tail.entries(),
                        k: 2,
                        lanes: $lanes,
                        plane,
                        parts,
                        items: far(&items, blocks - count),
                        long_rows: far(&long, first_part),
                        partial: far_mut(&y, 0_u64),
                        arrivals: far_mut(&tail.emulator.alloc_from(&[0_u32]), 0_u64),
                        row_ptr: far(&row_ptr, row),
                        col_ind: far(&columns, entry),
                        values: far(&values, entry),
                        x: tail.x_buffer.ptr(),
                        y: far_mut(&y, 2 * u64::from(row)).into(),
                        y_strides: PAIRS,
                    };
                    let (grid, shared) =
                        ((blocks, count.into()), csr_stream_bytes::<f64>($columns, plane));
                    launch_last::<$kernel<f64>>(&tail.emulator, grid, BLOCK, shared, args);
                    tail.check_y::<$kernel<f64>>(&y, 2);
                }
            };
        }
        check!(CsrStream1, 2, 1);
        check!(CsrStream2, 1, 2);
        check!(CsrStream4, 1, 4);
    }
}

/// Stored elements beyond 2^36.
#[test]
fn sell_spmm() {
    for (row, start) in PLACES {
        let tail = Tail::new(row, 0);
        let (columns, values, starts) = crate::spmv::sell(&tail);
        let starts: Vec<u32> = starts.iter().map(|s| s + start).collect();
        let element = u64::from(start) * 32;
        let (columns, values) =
            (tail.emulator.alloc_from(&columns), tail.emulator.alloc_from(&values));
        let starts = tail.emulator.alloc_from(&starts);
        let lengths = tail.emulator.alloc_from(&tail.lengths);
        let order: Vec<u32> = (row..tail.rows()).collect();
        let order = tail.emulator.alloc_from(&order);
        macro_rules! check {
            ($kernel:ident, $x:expr, $grid:expr, $block:expr, { $($field:ident: $value:expr),* }) => {
                for sorted in [0, 1] {
                    let y = tail.y(2);
                    let args = $kernel {
                        rows: tail.rows(),
                        k: 2,
                        sorted,
                        chunk_starts: far(&starts, row / 32),
                        permutation: far(&order, row),
                        row_lengths: far(&lengths, row),
                        col_ind: far(&columns, element),
                        values: far(&values, element),
                        x: $x.ptr(),
                        y: far_mut(&y, 2 * u64::from(row)).into(),
                        y_strides: PAIRS,
                        $($field: $value),*
                    };
                    launch_last::<$kernel<f64>>(&tail.emulator, $grid, $block, 0, args);
                    tail.check_y::<$kernel<f64>>(&y, 2);
                }
            };
        }
        let lanes = |lanes: u64| over(tail.rows().into(), ROWS.into(), 512 / lanes);
        check!(SellRowSplit1, tail.x_buffer, lanes(2), 512, { lanes: 2 });
        check!(SellRowSplit2, tail.x_buffer, lanes(1), 512, { lanes: 1 });
        check!(SellRowSplit4, tail.x_buffer, lanes(1), 512, { lanes: 1 });
        let x = tail.x_by_column();
        let rows = over(tail.rows().into(), ROWS.into(), 128);
        check!(SellThreadPerRow2, x, rows, 128, { cols: COLS });
        check!(SellThreadPerRow4, x, rows, 128, { cols: COLS });
        check!(SellThreadPerRow8, x, rows, 128, { cols: COLS });
    }
}

/// Block rows behind 2^30 others, with the last of the blocks that 32 bits number.
#[test]
fn bsr_row_split() {
    const BLOCK_ROWS: u32 = 32;
    let emulator = emulator();
    let (first, start) = (1_u32 << 30, (1_u32 << 27) - 3);
    let x: Vec<f64> = (0..COLS * 2).map(|i| f64::from(i * 31 % 23) + 1.0).collect();
    let x_buffer = emulator.alloc_from(&x);
    // One and two blocks in turn; positions are block rows from the last on.
    let blocks = |position: u32| 1 + position % 2;
    let order: Vec<u32> = (0..BLOCK_ROWS).map(|p| blocks(p) << 5 | (BLOCK_ROWS - 1 - p)).collect();
    let order = emulator.alloc_from(&order);
    let starts = emulator.alloc_from(&[start]);
    macro_rules! check {
        ($kernel:ident, $size:literal, $lanes:literal) => {
            let size: u32 = $size;
            let first_cols: Vec<u32> =
                (0..2 * 32).map(|at| at * 5 % (COLS / size) * size).collect();
            let elements = 2 * 32 * size * size;
            let values: Vec<f64> = (0..elements).map(|at| f64::from(at % 9) - 3.0).collect();
            let mut expected = vec![0.0; (BLOCK_ROWS * size * 2) as usize];
            for position in 0..BLOCK_ROWS {
                for (block, c, r, j) in (0..blocks(position))
                    .flat_map(|block| (0..size).map(move |c| (block, c)))
                    .flat_map(|(block, c)| (0..size).map(move |r| (block, c, r)))
                    .flat_map(|(block, c, r)| (0..2).map(move |j| (block, c, r, j)))
                {
                    let element = (block * size * size + c * size + r) * 32 + position;
                    let col = first_cols[(block * 32 + position) as usize] + c;
                    let row = (BLOCK_ROWS - 1 - position) * size + r;
                    expected[(row * 2 + j) as usize] +=
                        values[element as usize] * x[(col * 2 + j) as usize];
                }
            }
            let first_cols = emulator.alloc_from(&first_cols);
            let values = emulator.alloc_from(&values);
            let y = emulator.alloc_from(&vec![f64::NAN; expected.len()]);
            let at = u64::from(start) * 32;
            let args = $kernel {
                rows: (first + BLOCK_ROWS) * size,
                cols: COLS,
                k: 2,
                lanes: $lanes,
                block_rows: first + BLOCK_ROWS,
                full: 1,
                order: far(&order, first),
                starts: far(&starts, first / 32),
                first_cols: far(&first_cols, at),
                masks: far(&emulator.alloc_from(&[0_u64; 0]), at),
                values: far(&values, at * u64::from(size * size)),
                x: x_buffer.ptr(),
                y: far_mut(&y, u64::from(first * size) * 2).into(),
                y_strides: PAIRS,
            };
            let grid = over((first + BLOCK_ROWS).into(), BLOCK_ROWS.into(), 512 / $lanes);
            launch_last::<$kernel<f64>>(&emulator, grid, 512, 0, args);
            assert_eq!(y.to_vec(), expected, stringify!($kernel));
        };
    }
    check!(BsrRowSplit2x1, 2, 2);
    check!(BsrRowSplit2x2, 2, 1);
    check!(BsrRowSplit2x4, 2, 1);
    check!(BsrRowSplit3x1, 3, 2);
    check!(BsrRowSplit3x2, 3, 1);
    check!(BsrRowSplit3x4, 3, 1);
}

/// One column over 2^31 rows and more; two, between which a host has room for the rows.
#[test]
fn rearranged_x() {
    for (row, k) in [(1_u32 << 31, 1), (0xf7ff_f000, 1), (1 << 27, 2)] {
        let emulator = emulator();
        let rows = row + ROWS;
        let tile_rows = rearrange_tile_rows(k);
        let before = row / tile_rows * tile_rows;
        let height = rows - before;
        let element = |i: u32, j: u32| f64::from(i * 3 + j * 5000);
        let by_row: Vec<f64> =
            (0..height).flat_map(|i| (0..k).map(move |j| element(i, j))).collect();
        let by_column = || emulator.try_alloc_uninit::<f64>(((k - 1) * rows + height) as usize);
        let (source, target) = (by_column().unwrap(), by_column().unwrap());
        for j in 0..k {
            let column: Vec<f64> = (0..height).map(|i| element(i, j)).collect();
            source.write_at((j * rows) as usize, &column);
        }
        let between = emulator.alloc_from(&vec![f64::NAN; by_row.len()]);
        let grid = over(rows.into(), height.into(), tile_rows.into());
        let launch = |from_row_major, source, target| {
            let args = Rearrange { rows, k, tile_rows, from_row_major, source, target };
            let shared = rearrange_bytes::<f64>(k);
            launch_last::<Rearrange<f64>>(&emulator, grid, 256, shared, args);
        };
        let far_rows = u64::from(before) * u64::from(k);
        launch(0, far(&source, before), far_mut(&between, far_rows).into());
        assert_eq!(between.to_vec(), by_row);
        launch(1, far(&between, far_rows), far_mut(&target, before).into());
        for j in 0..k {
            let column = target.read_at((j * rows) as usize, height as usize);
            assert_eq!(column, source.read_at((j * rows) as usize, height as usize));
        }
    }
}

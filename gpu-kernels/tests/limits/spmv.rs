//! Kernels of y = A x.

use spm_gpu_kernels::spmv::*;

use crate::tail::*;

/// A kernel with a grid over rows, on CSR.
macro_rules! csr {
    ($tail:ident, $kernel:ty, $name:ident, $k:expr, $shape:expr, $shared:expr,
     { $($field:ident: $value:expr),* }, $row_ptr:ident) => {{
        let entry = u64::from($tail.first_entry);
        let row = u64::from($tail.first_row);
        let (row_ptr, columns, values) = $tail.csr();
        $tail.check::<$kernel>($k, $shape, $shared, |tail, x, y| {
            crate::spmv::csr!(@args $name, tail, x, y, $row_ptr(&row_ptr, row), far(&columns, entry),
                far(&values, entry), { $($field: $value),* })
        });
    }};
    (@args $name:ident, $tail:ident, $x:ident, $y:ident, $p:expr, $c:expr, $v:expr,
     { $($field:ident: $value:expr),* }) => {
        $name { rows: $tail.rows(), row_ptr: $p, col_ind: $c, values: $v, x: $x, y: $y.into(),
            $($field: $value),* }
    };
}

pub(crate) use csr;

#[test]
fn csr_spmv() {
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        csr!(tail, CsrThreadPerRow<f64>, CsrThreadPerRow, 1, (128, (128, 1)), 0, {}, far);
        csr!(tail, CsrWarpPerRow<f64>, CsrWarpPerRow, 1, (8, (32, 8)), 0, {}, far);
        let one = (256, (256, 1));
        csr!(tail, CsrSubwarpPerRowScaled<f64>, CsrSubwarpPerRowScaled, 1, one, 0, { lanes: 1 }, far);
        // As many threads as rows, of which a warp takes every (rows / 32)-th row.
        let shared = csr_warp_per_row_shared_bytes::<f64>(1024);
        let few = Tail::new(0, entry);
        let all = (32, (1024, 1));
        csr!(few, CsrWarpPerRowShared<f64>, CsrWarpPerRowShared, 1, all, shared, {}, far);
    }
    // Less than 2^32 threads.
    let tail = Tail::new((1 << 28) - 512, 0xf7ff_0000);
    csr!(tail, CsrSubwarpPerRowScaled<f64>, CsrSubwarpPerRowScaled, 1, (16, (128, 1)), 0, { lanes: 8 }, far);
}

/// Stored elements with the columns of every thread, 4 of them in 16 and in 32 bits.
#[test]
fn csr_ell_columns() {
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        // Behind the last row stored elements are empty.
        let mut columns = vec![[u32::MAX; 4]; ROWS.next_multiple_of(256) as usize];
        let mut left = tail.columns.iter();
        for (elements, &length) in columns.iter_mut().zip(&tail.lengths) {
            elements.iter_mut().zip(left.by_ref().take(length as usize)).for_each(|(s, &c)| *s = c);
        }
        let pairs = columns.as_flattened().chunks_exact(2);
        let short: Vec<u32> = pairs.map(|pair| pair[0] & 0xffff | pair[1] << 16).collect();
        let short = tail.emulator.alloc_from(&short);
        let wide = tail.emulator.alloc_from(columns.as_flattened());
        let (block, before) = ((256, (256, 1)), u64::from(row));
        csr!(tail, CsrEllColumns4<f64>, CsrEllColumns4, 1, block, 0,
            { lanes: 1, rest: 0, relative: 0, words: far(&short, 2 * before) }, far);
        csr!(tail, CsrEllColumns4Wide<f64>, CsrEllColumns4Wide, 1, block, 0,
            { lanes: 1, rest: 1, words: far(&wide, 4 * before) }, far);
    }
}

#[test]
fn ell_spmv() {
    for (row, _) in PLACES {
        let tail = Tail::new(row, 0);
        let (width, rows) = (4, ROWS as usize);
        let lengths = tail.emulator.alloc_from(&tail.lengths);
        let mut element = [vec![0_u32; rows * 4], vec![0; rows * 4]];
        let mut numbers = [vec![0_f64; rows * 4], vec![0.0; rows * 4]];
        let mut entry = 0;
        for (row, &length) in tail.lengths.iter().enumerate() {
            for s in 0..length as usize {
                for (order, at) in [(0, s * rows + row), (1, row * 4 + s)] {
                    element[order][at] = tail.columns[entry];
                    numbers[order][at] = tail.values[entry];
                }
                entry += 1;
            }
        }
        let [down, along] = element.map(|columns| tail.emulator.alloc_from(&columns));
        let [down_values, along_values] = numbers.map(|v| tail.emulator.alloc_from(&v));
        let before = u64::from(tail.first_row);
        let lengths = || far(&lengths, before);
        let block = (128, (128, 1));
        // Column-major with the pitch of the rows that are there: stored elements far back in each
        // column.
        tail.check::<EllThreadPerRow<f64>>(1, block, 0, |tail, x, y| EllThreadPerRow {
            rows: tail.rows(),
            pitch: rows as u64,
            row_lengths: lengths(),
            col_ind: far(&down, before),
            values: far(&down_values, before),
            x,
            y: y.into(),
        });
        macro_rules! along {
            ($name:ident, $block:expr, { $($field:ident: $value:expr),* }) => {
                tail.check::<$name<f64>>(1, $block, 0, |tail, x, y| $name {
                    rows: tail.rows(),
                    pitch: 4,
                    row_lengths: lengths(),
                    col_ind: far(&along, 4 * before),
                    values: far(&along_values, 4 * before),
                    x,
                    y: y.into(),
                    $($field: $value),*
                })
            };
        }
        along!(EllThreadPerRowRowmajor, block, {});
        along!(EllThreadPerRowRowmajorPadded, block, { width: width });
        along!(EllWarpPerRow, (4, (32, 4)), {});
        along!(EllWarpPerRowPadded, (4, (32, 4)), { width: width });
        // Hacks of one row: its stored elements side by side, at 64-bit offsets.
        let offsets: Vec<u64> = (0..=u64::from(ROWS)).map(|row| 4 * (before + row)).collect();
        let offsets = tail.emulator.alloc_from(&offsets);
        tail.check::<HllThreadPerRow<f64>>(1, block, 0, |tail, x, y| HllThreadPerRow {
            rows: tail.rows(),
            hack_size: 1,
            block_offsets: far(&offsets, before),
            row_lengths: lengths(),
            col_ind: far(&along, 4 * before),
            values: far(&along_values, 4 * before),
            x,
            y: y.into(),
        });
    }
}

/// x through a texture, and values or columns that are not stored.
#[test]
fn csr_variants() {
    let threads = (128, (128, 1));
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        let ((row_ptr, columns, values), texture) = (tail.csr(), tail.x_buffer.texture());
        let (row_ptr, columns) = (far(&row_ptr, row), far(&columns, entry));
        tail.check::<CsrThreadPerRowTexture<f64>>(1, threads, 0, |tail, _, y| {
            CsrThreadPerRowTexture {
                rows: tail.rows(),
                row_ptr,
                col_ind: columns,
                values: far(&values, entry),
                x: texture,
                y: y.into(),
            }
        });
        // Columns as a base for each row and an offset.
        let bases: Vec<u32> = (0..ROWS).map(|row| row % 3).collect();
        let bases_of_entries = bases.iter().zip(&tail.lengths);
        let bases_of_entries = bases_of_entries.flat_map(|(&base, &n)| (0..n).map(move |_| base));
        let mut tail = Tail::new(row, entry);
        let offsets: Vec<u16> = tail.columns.iter().map(|&column| column as u16).collect();
        for (column, base) in tail.columns.iter_mut().zip(bases_of_entries) {
            *column += base;
        }
        let values = tail.emulator.alloc_from(&tail.values);
        let row_ptr = tail.emulator.alloc_from(&tail.row_ptr());
        let bases = tail.emulator.alloc_from(&bases);
        let col_offsets = tail.emulator.alloc_from(&offsets);
        tail.check::<CsrCompact<f64>>(1, threads, 0, |tail, x, y| CsrCompact {
            rows: tail.rows(),
            lanes: 1,
            row_ptr: far(&row_ptr, row),
            bases: far(&bases, row),
            col_offsets: far(&col_offsets, entry),
            values: far(&values, entry),
            x,
            y: y.into(),
        });
        tail.values.fill(3.0);
        tail.check::<CsrCompactEqual<f64>>(1, threads, 0, |tail, x, y| CsrCompactEqual {
            rows: tail.rows(),
            lanes: 1,
            row_ptr: far(&row_ptr, row),
            bases: far(&bases, row),
            col_offsets: far(&col_offsets, entry),
            value: 3.0,
            x,
            y: y.into(),
        });
        let tail = Tail::equal(row, entry, 2.0);
        let (row_ptr, columns, _) = tail.csr();
        tail.check::<CsrSubwarpPerRowEqualScaled<f64>>(1, threads, 0, |tail, x, y| {
            CsrSubwarpPerRowEqualScaled {
                rows: tail.rows(),
                lanes: 1,
                row_ptr: far(&row_ptr, row),
                col_ind: far(&columns, entry),
                value: 2.0,
                x,
                y: y.into(),
            }
        });
    }
}

/// Rows and entries that are together just below 2^32, in as many tiles as that takes.
#[test]
fn csr_merge() {
    let block = 32;
    for (row, entry) in [(1_u32 << 31, 0x7fff_0000), (0x7fff_0000, 0x7fff_fe00), (9, 0xf7ff_0000)] {
        for equal in [false, true] {
            let tail = if equal { Tail::equal(row, entry, 2.0) } else { Tail::new(row, entry) };
            let (row_ptr, columns, values) = tail.csr();
            let before = (row + entry) / (block * MERGE_ITEMS);
            let starts = merge_tiles(&tail.pointers_from(0), block);
            let tiles = starts.len() as u32 - 1;
            let starts: Vec<_> = starts.iter().map(|&[r, e]| [row + r, entry + e]).collect();
            let starts = tail.emulator.alloc_from(&starts);
            let carries = tail.emulator.alloc_from(&vec![f64::NAN; tiles as usize]);
            let y = tail.y(1);
            let grid = (before + tiles, tiles.into());
            let shared = csr_merge_shared_bytes::<f64>(block);
            macro_rules! tiles {
                ($kernel:ident, $field:ident: $value:expr) => {{
                    let args = $kernel {
                        tile_starts: far(&starts, before),
                        row_ptr: far(&row_ptr, row),
                        col_ind: far(&columns, entry),
                        $field: $value,
                        x: tail.x_buffer.ptr(),
                        carries: far_mut(&carries, before),
                        y: far_mut(&y, row).into(),
                    };
                    launch_last::<$kernel<f64>>(&tail.emulator, grid, block, shared, args);
                }};
            }
            if equal {
                tiles!(CsrMergeEqual, value: 2.0);
            } else {
                tiles!(CsrMerge, values: far(&values, entry));
            }
            let args = CsrMergeCarry {
                tiles: before + tiles,
                rows: tail.rows(),
                tile_starts: far(&starts, before),
                carries: far(&carries, before),
                y: far_mut(&y, row).into(),
            };
            launch_last::<CsrMergeCarry<f64>>(&tail.emulator, grid, block, 0, args);
            tail.check_y::<CsrMerge<f64>>(&y, 1);
        }
    }
}

/// As many tiles as a grid has blocks, long rows at the end.
#[test]
fn csr_adaptive() {
    let lengths = [2, 0, 9000, 3, 2100, 1, 1, 20_000, 4];
    for (row, entry) in PLACES {
        for equal in [false, true] {
            let mut tail = Tail::of(row, entry, lengths.to_vec(), 1);
            if equal {
                tail.values.fill(2.0);
            }
            let (row_ptr, columns, values) = tail.csr();
            let mut cut = AdaptiveTiles::of(&tail.pointers_from(0));
            let partials_before = 0xf000_0000_u32;
            for [first, rows, first_entry, _] in &mut cut.tiles {
                *first += if *rows == 0 { partials_before } else { row };
                *first_entry += entry;
            }
            for [long, first, ..] in &mut cut.long_rows {
                (*long, *first) = (*long + row, *first + partials_before);
            }
            let (tiles, long) = (cut.tiles.len() as u32, cut.long_rows.len() as u32);
            let before = i32::MAX as u32 - tiles;
            let device_tiles = tail.emulator.alloc_from(&cut.tiles);
            let long_rows = tail.emulator.alloc_from(&cut.long_rows);
            let partials = tail.emulator.alloc_from(&vec![f64::NAN; cut.partials as usize]);
            let y = tail.y(1);
            let shared = csr_adaptive_shared_bytes::<f64>();
            macro_rules! tiles {
                ($kernel:ident, $field:ident: $value:expr) => {{
                    let args = $kernel {
                        tiles: far(&device_tiles, before),
                        row_ptr: far(&row_ptr, row),
                        col_ind: far(&columns, entry),
                        $field: $value,
                        x: tail.x_buffer.ptr(),
                        partials: far_mut(&partials, partials_before),
                        y: far_mut(&y, row).into(),
                    };
                    let grid = (before + tiles, tiles.into());
                    launch_last::<$kernel<f64>>(&tail.emulator, grid, 64, shared, args);
                }};
            }
            if equal {
                tiles!(CsrAdaptiveEqual, value: 2.0);
            } else {
                tiles!(CsrAdaptive, values: far(&values, entry));
            }
            // A warp for each long row, of which 32 bits number 2^27.
            let before = (1 << 27) - long;
            let args = CsrAdaptiveCombine {
                count: before + long,
                long_rows: far(&long_rows, before),
                partials: far(&partials, partials_before),
                y: far_mut(&y, row).into(),
            };
            let grid = (before + long, long.into());
            launch_last::<CsrAdaptiveCombine<f64>>(&tail.emulator, grid, 32, 0, args);
            tail.check_y::<CsrAdaptive<f64>>(&y, 1);
        }
    }
}

/// As many quads as 32 bits number entries of, the rows before the tail one each; two column blocks over fewer.
#[test]
fn csr_column_blocks() {
    for (row, col_blocks) in [((1_u32 << 30) - 2 * ROWS, 1), (1 << 20, 2)] {
        let tail = Tail::new(row, 7);
        let (rows, block_cols) = (tail.rows(), COLS.div_ceil(col_blocks).next_multiple_of(2));
        // The quads of all rows before, then those of the tail, in groups from that of the quad before the tail on.
        let (mut quads, mut chunks) = (0, Vec::new());
        let (mut offsets, mut values) = (Vec::new(), Vec::new());
        let first_group = (row - 1) / 32;
        let (mut ends, mut parts) = (Vec::new(), Vec::new());
        for col_block in 0..col_blocks {
            for row in if col_block == 0 { 32 * first_group } else { 0 }..rows {
                let inside = |column| column / block_cols == col_block;
                let of_row = tail.triplets().filter(|&(r, c, _)| r == row && inside(c));
                let of_row: Vec<_> = of_row.map(|(_, c, value)| (c % block_cols, value)).collect();
                if quads == 0 {
                    quads = 32 * first_group;
                }
                if row == tail.first_row {
                    chunks.push([col_block, quads, 0, 0]);
                }
                for quad in 0..of_row.len().div_ceil(4).max(1) {
                    let group = (quads / 32 - first_group) as usize;
                    if quads % 32 == 0 {
                        ends.push(0);
                        parts.push(col_block * rows + row);
                    }
                    let is_last = 4 * (quad + 1) >= of_row.len();
                    ends[group] |= u32::from(is_last) << (quads % 32);
                    for entry in 4 * quad..4 * (quad + 1) {
                        let (column, value) =
                            of_row.get(entry).copied().unwrap_or((block_cols, 0.0));
                        offsets.push(column as u16);
                        values.push(value);
                    }
                    quads += 1;
                }
            }
            chunks[col_block as usize][2] = quads;
        }
        chunks.iter_mut().for_each(|chunk| chunk[3] = quads);
        let emulator = &tail.emulator;
        let before = u64::from(32 * first_group);
        let single: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let (ends, parts) = (emulator.alloc_from(&ends), emulator.alloc_from(&parts));
        let (offsets, chunks) = (emulator.alloc_from(&offsets), emulator.alloc_from(&chunks));
        let (values, single) = (emulator.alloc_from(&values), emulator.alloc_from(&single));
        let sums = emulator.alloc_zeroed::<f64>(((col_blocks - 1) * rows + ROWS) as usize);
        let shared = csr_column_blocks_shared_bytes::<f64>(block_cols);
        macro_rules! check {
            ($kernel:ident { $field:ident: $value:expr }, $tail:expr) => {{
                let args = $kernel {
                    cols: COLS,
                    block_cols,
                    chunks: chunks.ptr(),
                    ends: far(&ends, first_group),
                    parts: far(&parts, first_group),
                    col_offsets: far(&offsets, 4 * before),
                    $field: $value,
                    x: tail.x_buffer.ptr(),
                    sums: far_mut(&sums, row),
                };
                launch_last::<$kernel<f64>>(
                    emulator,
                    (col_blocks, col_blocks.into()),
                    64,
                    shared,
                    args,
                );
                let y = tail.y(1);
                let args = ColumnBlockSums {
                    rows,
                    col_blocks,
                    sums: far(&sums, row),
                    y: far_mut(&y, row).into(),
                };
                let grid = over(rows.into(), ROWS.into(), 1);
                launch_last::<ColumnBlockSums<f64>>(emulator, grid, 1, 0, args);
                $tail.check_y::<$kernel<f64>>(&y, 1);
            }};
        }
        check!(CsrColumnBlocks { values: far(&values, 4 * before) }, tail);
        check!(CsrColumnBlocksSingle { values: far(&single, 4 * before) }, tail);
        let equal = Tail::equal(row, 7, 3.0);
        check!(CsrColumnBlocksEqual { value: 3.0 }, equal);
    }
}

/// Stored elements of SELL-32, by chunk: columns, values, and each chunk's first chunk column.
pub(crate) fn sell(tail: &Tail) -> (Vec<u32>, Vec<f64>, Vec<u32>) {
    let (mut columns, mut values, mut starts) = (Vec::new(), Vec::new(), vec![0]);
    let row_ptr = tail.pointers_from(0);
    for first in (0..tail.lengths.len()).step_by(32) {
        let lengths = &tail.lengths[first..(first + 32).min(tail.lengths.len())];
        let width = lengths.iter().max().copied().unwrap_or(0);
        for element in 0..width {
            for lane in 0..32 {
                let length = lengths.get(lane).copied().unwrap_or(0);
                let entry = (element < length).then(|| (row_ptr[first + lane] + element) as usize);
                columns.push(entry.map_or(0, |entry| tail.columns[entry]));
                values.push(entry.map_or(0.0, |entry| tail.values[entry]));
            }
        }
        starts.push(starts[starts.len() - 1] + width);
    }
    (columns, values, starts)
}

/// Stored elements beyond 2^36.
#[test]
fn sell_spmv() {
    let threads = (128, (128, 1));
    for (row, start) in PLACES {
        let tail = Tail::new(row, 0);
        let (columns, values, starts) = sell(&tail);
        let starts: Vec<u32> = starts.iter().map(|s| s + start).collect();
        let element = u64::from(start) * 32;
        let (columns, values) =
            (tail.emulator.alloc_from(&columns), tail.emulator.alloc_from(&values));
        let starts = tail.emulator.alloc_from(&starts);
        let lengths = tail.emulator.alloc_from(&tail.lengths);
        let order: Vec<u32> = (row..tail.rows()).collect();
        let order = tail.emulator.alloc_from(&order);
        tail.check::<SellUnsorted<f64>>(1, threads, 0, |tail, x, y| SellUnsorted {
            rows: tail.rows(),
            chunk_starts: far(&starts, row / 32),
            row_lengths: far(&lengths, row),
            col_ind: far(&columns, element),
            values: far(&values, element),
            x,
            y: y.into(),
        });
        tail.check::<SellSorted<f64>>(1, threads, 0, |tail, x, y| SellSorted {
            rows: tail.rows(),
            chunk_starts: far(&starts, row / 32),
            permutation: far(&order, row),
            row_lengths: far(&lengths, row),
            col_ind: far(&columns, element),
            values: far(&values, element),
            x,
            y: y.into(),
        });
    }
}

/// Columns of 8, 16 and 32 bits, their groups and offsets as far back as their headers can say.
#[test]
fn sell_compact() {
    let threads = (128, (128, 1));
    let (groups, units) = ((1 << 30) - 4096, (1_u32 << 30) - 4096);
    for ((row, start), spread) in PLACES.into_iter().zip([1, 100, 2000]) {
        let lengths = (0..ROWS).map(|row| row * 7 % 5).collect();
        let mut tail = Tail::of(row, 0, lengths, spread);
        let (columns, values, starts) = sell(&tail);
        let offsets: Vec<usize> = starts.iter().map(|&s| s as usize * 32).collect();
        let mut compact = CompactColumns::of(&offsets, &tail.lengths, &columns).unwrap();
        let modes: Vec<u32> = compact.chunks.iter().map(|chunk| chunk[3] & 3).collect();
        assert!(modes.iter().all(|mode| *mode == modes[0]) && modes[0] > 0, "{modes:?}");
        for [first, _, group, tagged] in &mut compact.chunks {
            (*first, *group, *tagged) = (*first + start, *group + groups, *tagged + (units << 2));
        }
        let element = u64::from(start) * 32;
        let chunks = tail.emulator.alloc_from(&compact.chunks);
        let bases = tail.emulator.alloc_from(&compact.bases);
        let offsets = tail.emulator.alloc_from(&compact.offsets);
        let values = tail.emulator.alloc_from(&values);
        let lengths = tail.emulator.alloc_from(&tail.lengths);
        let order: Vec<u32> = (row..tail.rows()).collect();
        let order = tail.emulator.alloc_from(&order);
        macro_rules! check {
            ($kernel:ident { $($field:ident: $value:expr),* }) => {
                tail.check::<$kernel<f64>>(1, threads, 0, |tail, x, y| $kernel {
                    rows: tail.rows(),
                    cols: tail.x.len() as u32,
                    chunks: far(&chunks, row / 32),
                    bases: far(&bases, u64::from(groups) * 4),
                    offsets: far(&offsets, u64::from(units) * 32),
                    row_lengths: far(&lengths, row),
                    x,
                    y: y.into(),
                    $($field: $value),*
                })
            };
        }
        let order = far(&order, row);
        check!(SellCompactUnsorted { values: far(&values, element) });
        check!(SellCompactSorted { values: far(&values, element), permutation: order });
        tail.values.fill(2.0);
        check!(SellCompactEqualUnsorted { value: 2.0 });
        check!(SellCompactEqualSorted { value: 2.0, permutation: order });
    }
}

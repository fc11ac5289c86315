//! `sellp`, from CSR to the product. A warp takes a chunk, so that 32 bits number 2^27 of them; what
//! they hold begins as far back as their headers can say.

use spm_gpu_kernels::convert::*;
use spm_gpu_kernels::spmv::*;

use crate::tail::*;

/// Rows before the tail that a chunk may compare itself with.
const BEFORE: u32 = 32;
/// What is measured of a chunk.
const MEASURES: usize = 4;

/// One way to store the columns, for all ways to store values.
fn check(tail: &mut Tail, log_lanes: u32, compact: bool, diagonals: bool) {
    let emulator = tail.emulator.clone();
    let (rows, row, entry) = (tail.rows(), tail.first_row, tail.first_entry);
    let height = 32 >> log_lanes;
    let (chunks, first) = (rows.div_ceil(height), row / height);
    let count = (chunks - first) as usize;
    // A block has chunks of the tail only.
    let block = 32;
    let grid = (chunks, count as u64);
    let empty = vec![entry; BEFORE as usize];
    let row_ptr = emulator.alloc_from(&[empty, tail.row_ptr()].concat());
    let row_ptr = far(&row_ptr, row - BEFORE);
    let columns = emulator.alloc_from(&tail.columns);
    let columns = far(&columns, entry);
    for round in [1, 4] {
        let modes = emulator.alloc_from(&vec![0_u32; count]);
        let words = (MEASURES - 1) * chunks as usize + count + 1;
        let sums = emulator.try_alloc_uninit::<u32>(words).unwrap();
        let args = SellpMeasure {
            rows,
            chunks,
            log_lanes,
            round,
            compact: compact.into(),
            diagonals: diagonals.into(),
            row_ptr,
            col_ind: columns,
            measures: far_mut(&sums, first),
            modes: far_mut(&modes, first),
        };
        launch_last::<SellpMeasure>(&emulator, grid, block, 0, args);
        // The exclusive sums, as if the chunks before had these stored elements, bases, offsets, fill
        // words: all together beyond 32 bits.
        let before = [0xf000_0000_u32, (1 << 30) - 8192, (1 << 30) - 8192, (1 << 30) - 8192];
        let (mut zero, mut totals, mut zeros) = (0_u32, [0; MEASURES], [0; MEASURES]);
        for measure in 0..MEASURES {
            let at = measure * chunks as usize;
            let measured = sums.read_at(at, count);
            let mut sum = zero.wrapping_add(before[measure]);
            let mut exclusive = Vec::new();
            for &of_chunk in &measured {
                exclusive.push(sum);
                sum = sum.wrapping_add(of_chunk);
            }
            exclusive.push(sum);
            sums.write_at(at, &exclusive);
            totals[measure] = measured.iter().sum::<u32>() as usize;
            zeros[measure] = zero;
            zero = sum;
        }
        // Where each measure begins; the buffer has no place for that of the first.
        let starts = emulator.alloc_zeroed::<u32>(words + first as usize);
        for (measure, &zero) in zeros.iter().enumerate() {
            let at = measure * chunks as usize;
            let tail_of_measure = sums.read_at(at, count + 1);
            starts.write_at(at, &[zero]);
            starts.write_at(at + first as usize, &tail_of_measure);
        }
        let starts_ptr = starts.ptr();

        let headers = emulator.alloc_from(&vec![[0_u32; 4]; count]);
        let bases = emulator.alloc_zeroed::<u32>(4 * totals[1]);
        let offsets = emulator.alloc_zeroed::<u32>(32 * totals[2]);
        let fills = emulator.alloc_zeroed::<u32>(32 * totals[3]);
        let [_, quads, units, words] = before.map(u64::from);
        let args = SellpColumns {
            rows,
            chunks,
            log_lanes,
            row_ptr,
            col_ind: columns,
            sums: starts_ptr,
            modes: far(&modes, first),
            headers: far_mut(&headers, first),
            bases: far_mut(&bases, 4 * quads),
            offsets: far_mut(&offsets, 32 * units),
            fills: far_mut(&fills, 32 * words),
        };
        launch_last::<SellpColumns>(&emulator, grid, block, 0, args);
        let stored: Vec<f64> = tail.values.clone();
        let stored = emulator.alloc_from(&stored);
        let element = u64::from(before[0]) * 32;
        let elements = 32 * totals[0];
        let (wide, single) =
            (emulator.alloc_zeroed::<f64>(elements), emulator.alloc_zeroed::<f32>(elements));
        macro_rules! product {
            ($kernel:ident, $field:ident: $value:expr) => {{
                let y = tail.y(1);
                let args = $kernel {
                    rows,
                    cols: tail.x.len() as u32,
                    log_lanes,
                    headers: far(&headers, first),
                    bases: far(&bases, 4 * quads),
                    offsets: far(&offsets, 32 * units),
                    fills: far(&fills, 32 * words),
                    row_ptr,
                    $field: $value,
                    x: tail.x_buffer.ptr(),
                    y: far_mut(&y, row).into(),
                };
                launch_last::<$kernel<f64>>(&emulator, grid, block, 0, args);
                tail.check_y::<$kernel<f64>>(&y, 1);
            }};
        }
        macro_rules! values {
            ($kernel:ident, $elements:expr) => {
                let args = $kernel {
                    rows,
                    chunks,
                    log_lanes,
                    row_ptr,
                    col_ind: columns,
                    sums: starts_ptr,
                    modes: far(&modes, first),
                    values: far(&stored, entry),
                    elements: far_mut($elements, element),
                };
                launch_last::<$kernel<f64>>(&emulator, grid, block, 0, args);
            };
        }
        if round == 1 {
            values!(SellpValues, &wide);
            product!(Sellp, values: far(&wide, element));
        } else {
            values!(SellpValuesSingle, &single);
            product!(SellpSingle, values: far(&single, element));
            let values = std::mem::replace(&mut tail.values, vec![2.0; stored.len()]);
            product!(SellpEqual, value: 2.0);
            tail.values = values;
        }
    }
}

/// Lengths, lanes of a row as a power of two, and the rows before: 2^27 chunks in each.
fn tails() -> impl Iterator<Item = (Tail, u32)> {
    [(0xf7ff_f000_u32, 0), (1 << 31, 0), ((1 << 29) - 4096, 2)].into_iter().flat_map(
        |(row, log)| {
            [1, 100, 2000].map(|spread| {
                let lengths = (0..ROWS).map(|row| row * 7 % 5).collect();
                (Tail::of(row, 0xf7ff_0000, lengths, spread), log)
            })
        },
    )
}

#[test]
fn columns_of_8_16_and_32_bits() {
    for (mut tail, log_lanes) in tails() {
        check(&mut tail, log_lanes, true, false);
        check(&mut tail, log_lanes, false, false);
    }
}

/// A band: the chunks share their diagonals.
#[test]
fn elements_by_diagonal() {
    for (mut tail, log_lanes) in tails().step_by(3) {
        let lengths = vec![3; ROWS as usize];
        let mut band = Tail::of(tail.first_row, tail.first_entry, lengths, 10);
        for (entry, column) in band.columns.iter_mut().enumerate() {
            *column = entry as u32 / 3 + entry as u32 % 3;
        }
        check(&mut band, log_lanes, true, true);
        check(&mut tail, log_lanes, true, true);
    }
}

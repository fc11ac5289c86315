//! `sellp`, from CSR to the product. A warp takes a chunk, so that 32 bits number 2^27 of them; what
//! they hold begins as far back as their headers can say.

use spm_gpu_kernels::convert::*;
use spm_gpu_kernels::spmv::*;

use crate::tail::*;

/// Rows before the tail that a chunk may compare itself with.
const BEFORE: u32 = 32;
/// What is measured of a chunk.
const MEASURES: usize = 4;

/// How the columns are stored.
#[derive(Clone, Copy)]
struct Stored {
    compact: bool,
    diagonals: bool,
    log_sigma: u32,
}

/// One way to store the columns, for all ways to store values.
fn check(tail: &mut Tail, log_lanes: u32, stored: Stored) {
    let Stored { compact, diagonals, log_sigma } = stored;
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
    // The order of the rows of the tail, which begins with a window.
    let sorted = emulator.alloc_zeroed::<u16>(ROWS as usize);
    if log_sigma > 0 {
        let (windows, of_tail) = (rows >> log_sigma, ROWS >> log_sigma);
        let grid = (windows + 1, u64::from(of_tail) + 1);
        let args = SellpOrder { rows, row_ptr, order: far_mut(&sorted, row) };
        launch_last::<SellpOrder>(&emulator, grid, 1 << log_sigma, 4 << log_sigma, args);
    }
    let order = far(&sorted, row);
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
            log_sigma,
            order,
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
            log_sigma,
            order,
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
            ($in_order:ident, $sorted:ident, $shared:expr, $($field:ident: $value:expr),*) => {
                if log_sigma == 0 {
                    product!($in_order, $shared, $($field: $value),*)
                } else {
                    product!($sorted, $shared, $($field: $value,)* log_sigma: log_sigma, order: order)
                }
            };
            ($kernel:ident, $shared:expr, $($field:ident: $value:expr),*) => {{
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
                    $($field: $value,)*
                    x: tail.x_buffer.ptr(),
                    y: far_mut(&y, row).into(),
                };
                launch_last::<$kernel<f64>>(&emulator, grid, block, $shared, args);
                tail.check_y::<$kernel<f64>>(&y, 1);
            }};
        }
        macro_rules! values {
            ($kernel:ident, $elements:expr, $before:expr $(, $more:ident: $of:expr)*) => {
                let args = $kernel {
                    rows,
                    chunks,
                    log_lanes,
                    row_ptr,
                    col_ind: columns,
                    log_sigma,
                    order,
                    sums: starts_ptr,
                    modes: far(&modes, first),
                    values: far(&stored, entry),
                    $($more: $of,)*
                    elements: far_mut($elements, $before),
                };
                launch_last::<$kernel<f64>>(&emulator, grid, block, 0, args);
            };
        }
        if round == 1 {
            values!(SellpValues, &wide, element);
            product!(Sellp, SellpSorted, 0, values: far(&wide, element));
        } else {
            values!(SellpValuesSingle, &single, element);
            product!(SellpSingle, SellpSingleSorted, 0, values: far(&single, element));
            // The codes of the values, with 0 for the number 0.
            let mut words = vec![NO_VALUE; VALUE_TABLE as usize];
            words.push(0);
            let table = emulator.alloc_from(&words);
            let args = FindValues {
                entries: tail.values.len() as u32,
                values: stored.ptr(),
                table: table.ptr_mut(),
            };
            emulator.launch::<FindValues<f64>>(2, 32, 0, args).unwrap();
            words = table.read_at(0, VALUE_TABLE as usize);
            let mut numbered = vec![0.0; MOST_VALUES as usize];
            let mut codes = vec![0_u32; words.len()];
            let of_values = words.iter().zip(&mut codes).filter(|(word, _)| **word != NO_VALUE);
            for (number, (&word, code)) in (1..).zip(of_values) {
                if word != 0.0_f64.to_bits() {
                    (numbered[number], *code) = (f64::from_bits(word), number as u32);
                }
            }
            let (codes, numbered) = (emulator.alloc_from(&codes), emulator.alloc_from(&numbered));
            let coded = emulator.alloc_zeroed::<u32>(elements / 4);
            let (of_table, of_codes) = (table.ptr(), codes.ptr());
            let before = element / 4;
            values!(SellpValuesCoded, &coded, before, table: of_table, codes: of_codes);
            let (far_codes, shared) = (far(&coded, before), coded_shared_bytes::<f64>());
            product!(SellpCoded, SellpCodedSorted, shared, codes: far_codes, table: numbered.ptr());
            let values = std::mem::replace(&mut tail.values, vec![2.0; stored.len()]);
            product!(SellpEqual, SellpEqualSorted, 0, value: 2.0);
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
        for compact in [true, false] {
            let stored = Stored { compact, diagonals: false, log_sigma: 0 };
            check(&mut tail, log_lanes, stored);
            check(&mut tail, log_lanes, Stored { log_sigma: 6, ..stored });
        }
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
        let stored = Stored { compact: true, diagonals: true, log_sigma: 0 };
        check(&mut band, log_lanes, stored);
        check(&mut tail, log_lanes, stored);
    }
}

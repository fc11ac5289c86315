//! Thread pools and the procedures of the transpositions on CPU cores, with slices of any length.

use std::sync::atomic::{AtomicUsize, Ordering};

use arbitrary::{Arbitrary, Result, Unstructured};
use spm_cpu::transpose::procedures::{
    count_per_part, exclusive_scan, index_to_pointers, merge, pointers_to_index, segmented_sort,
    vertical_scan,
};
use spm_cpu::{PlanOptions, Threads, prefer_huge_pages};
use spm_formats::kernel::Schedule;

use super::{allowing_panics, index, size};

pub(super) fn check(u: &mut Unstructured<'_>) -> Result<()> {
    let threads = Threads::new(u.int_in_range(0..=4)?);
    match u.int_in_range(0..=5_u8)? {
        0 => pool(u, &threads)?,
        1 => sorts(u, &threads)?,
        2 => scans(u, &threads)?,
        3 => counts(u, &threads)?,
        4 => expansion(u, &threads)?,
        _ => refused(u)?,
    }
    // The pool works on, whatever its jobs did.
    let sum = AtomicUsize::new(0);
    threads.run(|part| {
        sum.fetch_add(part + 1, Ordering::Relaxed);
    });
    let count = threads.count();
    assert_eq!(sum.into_inner(), count * (count + 1) / 2);
    Ok(())
}

/// `length` numbers; a length near the right one.
fn words(u: &mut Unstructured<'_>, right: usize) -> Result<Vec<u32>> {
    let length = if u.ratio(3, 4)? { right } else { u.int_in_range(0..=right + 2)? };
    (0..length).map(|_| u.int_in_range(0..=9)).collect()
}

fn pool(u: &mut Unstructured<'_>, threads: &Threads) -> Result<()> {
    let (total, chunk) = (u.int_in_range(0..=50)?, size(u)?);
    let schedule = *u.choose(&[Schedule::Static, Schedule::Dynamic])?;
    // A part that panics, a pool used from inside a job and from other threads.
    let bad = u.int_in_range(0..=6)?;
    allowing_panics(|| {
        threads.run(|part| {
            threads.for_each_chunk(total, schedule, chunk, |_| ());
            assert_ne!(part, bad);
        });
    });
    let seen: Vec<AtomicUsize> = (0..total).map(|_| AtomicUsize::new(0)).collect();
    let visit = || {
        threads.for_each_chunk(total, schedule, chunk, |range| {
            seen[range].iter().for_each(|seen| {
                seen.fetch_add(1, Ordering::Relaxed);
            });
        });
    };
    std::thread::scope(|scope| {
        scope.spawn(visit);
        visit();
    });
    assert!(seen.into_iter().all(|seen| seen.into_inner() == 2), "{schedule:?} {chunk} {total}");
    Ok(())
}

fn sorts(u: &mut Unstructured<'_>, threads: &Threads) -> Result<()> {
    let segment = size(u)?;
    let mut keys: Vec<u64> = words(u, 40)?.into_iter().map(u64::from).collect();
    let input = keys.clone();
    if allowing_panics(|| segmented_sort(threads, &mut keys, segment)).is_none() {
        assert_eq!(segment, 0);
        return Ok(());
    }
    let sorted = |keys: &[u64], segment: usize| {
        let mut keys = keys.to_vec();
        keys.chunks_mut(segment).for_each(<[u64]>::sort_unstable);
        keys
    };
    assert_eq!(keys, sorted(&input, segment));
    // Of sorted segments and of those that are not.
    let from = if bool::arbitrary(u)? { &keys } else { &input };
    let mut to = vec![0; if u.ratio(1, 8)? { 7 } else { keys.len() }];
    let merged = allowing_panics(|| merge(threads, from, &mut to, segment));
    assert_eq!(merged.is_some(), to.len() == keys.len());
    if merged.is_some() && from == &keys {
        assert_eq!(to, sorted(&input, segment.saturating_mul(2)));
    }
    Ok(())
}

fn scans(u: &mut Unstructured<'_>, threads: &Threads) -> Result<()> {
    // Long enough for the parallel steps.
    let repeats = *u.choose(&[1, 1, 2000])?;
    let mut values = words(u, 17)?.repeat(repeats);
    if u.ratio(1, 4)? && !values.is_empty() {
        let at = u.choose_index(values.len())?;
        values[at] = index(u)?;
    }
    let (input, mut sums) = (values.clone(), words(u, threads.count())?);
    let sum: u64 = input.iter().map(|&value| u64::from(value)).sum();
    match allowing_panics(|| exclusive_scan(threads, &mut values, &mut sums)) {
        Some(total) => {
            assert_eq!(u64::from(total), sum);
            assert!((1..values.len()).all(|i| values[i] == values[i - 1] + input[i - 1]));
        }
        None => assert!(u32::try_from(sum).is_err() || sums.len() < threads.count()),
    }
    let columns = u.int_in_range(0..=7)?;
    let (mut matrix, mut totals) = (words(u, 3 * columns)?, words(u, columns)?);
    let whole =
        totals.len() == columns && matrix.len().checked_rem(columns).unwrap_or(matrix.len()) == 0;
    let input = matrix.clone();
    let scanned = allowing_panics(|| vertical_scan(threads, &mut matrix, columns, &mut totals));
    assert_eq!(scanned.is_some(), whole, "{} of {columns}", input.len());
    if whole {
        for (column, &total) in totals.iter().enumerate() {
            assert_eq!(input.iter().skip(column).step_by(columns).sum::<u32>(), total);
        }
    }
    Ok(())
}

fn counts(u: &mut Unstructured<'_>, threads: &Threads) -> Result<()> {
    let bins = u.int_in_range(0..=11)?;
    let indices = words(u, 30)?;
    let mut counts = words(u, threads.count() * bins)?;
    let valid =
        counts.len() == threads.count() * bins && indices.iter().all(|&i| (i as usize) < bins);
    let counted = allowing_panics(|| count_per_part(threads, &indices, bins, &mut counts));
    assert_eq!(counted.is_some(), valid);
    let (mut pointers, mut sums) = (words(u, bins + 1)?, words(u, threads.count())?);
    let made = allowing_panics(|| {
        index_to_pointers(threads, &indices, &mut pointers, &mut counts, &mut sums);
    });
    if made.is_some() {
        let of = |bin: usize| indices.iter().filter(|&&index| (index as usize) < bin).count();
        assert!((0..pointers.len()).all(|bin| pointers[bin] as usize == of(bin)));
    }
    Ok(())
}

fn expansion(u: &mut Unstructured<'_>, threads: &Threads) -> Result<()> {
    let mut pointers = words(u, 12)?;
    match u.int_in_range(0..=2_u8)? {
        0 => pointers.insert(0, 0),
        1 => {
            pointers.push(0);
            pointers.sort_unstable();
        }
        _ => pointers.push(index(u)?),
    }
    let valid = pointers.first() == Some(&0) && pointers.is_sorted();
    let entries = pointers.last().map_or(0, |&last| last.min(2000) as usize);
    let mut rows = words(u, entries)?;
    let expanded = allowing_panics(|| pointers_to_index(threads, &pointers, &mut rows));
    if valid && rows.len() == entries {
        assert!(expanded.is_some());
        let row = |entry| pointers[1..].partition_point(|&end| end as usize <= entry);
        assert!((0..entries).all(|entry| rows[entry] as usize == row(entry)), "{pointers:?}");
    }
    Ok(())
}

/// Counts of threads that no system starts, and memory of any type for huge pages.
fn refused(u: &mut Unstructured<'_>) -> Result<()> {
    let count = size(u)?;
    if !(100..=1 << 22).contains(&count) {
        assert_eq!(allowing_panics(|| Threads::new(count)).is_none(), count > 100);
        assert_eq!(allowing_panics(|| PlanOptions::with_threads(count)).is_none(), count > 100);
    }
    let mut memory = vec![u8::arbitrary(u)?; u.int_in_range(0..=5_usize)? << 20];
    let (first, nothing) = (memory.first().copied(), &mut [(); 9]);
    prefer_huge_pages(&mut memory);
    prefer_huge_pages(nothing);
    assert!(memory.iter().all(|byte| Some(*byte) == first));
    Ok(())
}

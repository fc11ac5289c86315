//! Matrices that come from files, triplets and transpositions, on several numbers of ranks.

mod common;

use common::{RANKS, distribute, matrices};
use spm_dist::threads::{Delivery, run, run_with};
use spm_dist::{
    CgOptions, Communicator, DistCsr, DistError, DistOperator, Options, Partition, Rows,
    conjugate_gradients, matrix_market, npz,
};
use spm_formats::cache::save_npz;
use spm_formats::convert::csr_to_coo;
use spm_formats::matrix_market::{ReadOptions, Symmetry, read_csr, write_coo, write_csr_symmetric};
use spm_formats::{Csr, convert};
use spm_testing::generate;

/// The matrix whose rows the ranks have.
fn whole(parts: Vec<Rows<f64>>, cols: usize) -> Csr<f64> {
    let rows: usize = parts.iter().map(Rows::rows).sum();
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    for part in parts {
        let start = values.len();
        row_ptr.extend(part.row_ptr()[1..].iter().map(|&end| (start + end) as u32));
        col_ind.extend(part.col_ind().iter().map(|&col| col as u32));
        values.extend_from_slice(part.values());
    }
    Csr::new((rows, cols), row_ptr, col_ind, values).unwrap()
}

#[test]
fn transposes_are_those_of_one_device() {
    for (name, a) in matrices() {
        let expected = convert::csc_to_csr(a.transposed());
        for ranks in RANKS {
            let parts = run_with(ranks, Delivery { seed: Some(6) }, |comm| {
                let a = distribute(comm, &a)?;
                let transposed = a.transposed(comm)?;
                assert_eq!(transposed.transposed(comm)?.to_rows(), a.to_rows());
                Ok(transposed.to_rows())
            });
            assert_eq!(whole(parts.unwrap(), a.rows()), expected, "{name} {ranks}");
        }
    }
}

#[test]
fn triplets_of_any_rank_are_assembled() {
    for (name, a) in matrices() {
        // Whole numbers: the order of sums does not matter.
        let a = a.map(|&value| (8.0 * value).round());
        for ranks in RANKS {
            let parts = run_with(ranks, Delivery { seed: Some(7) }, |comm| {
                // Each entry in two halves, of ranks that are not its row's.
                let (rank, size) = (comm.rank(), comm.size());
                let own = |at: &usize| at % size == rank || (at + 1) % size == rank;
                let times = if size == 1 { 1.0 } else { 0.5 };
                let entries: Vec<(u64, u64, f64)> = a
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| own(at))
                    .map(|(_, (row, col, value))| (row as u64, col as u64, times * value))
                    .collect();
                let rows = Partition::even(a.rows() as u64, size);
                Rows::from_triplets(comm, &rows, a.cols() as u64, &entries)
            });
            assert_eq!(whole(parts.unwrap(), a.cols()), a, "{name} {ranks}");
        }
    }
    let outside = run(2, |comm| {
        let entries = [(3, comm.rank() as u64, 1.0)];
        Rows::from_triplets(comm, &Partition::even(4, 2), 1, &entries).map(drop)
    });
    assert_eq!(
        outside.unwrap_err().to_string(),
        "rank 1: entry (3, 1) is outside of a 4 x 1 matrix"
    );
}

#[test]
fn files_are_read_by_all_ranks_together() {
    let folder = std::env::temp_dir().join(format!("spm-dist-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (number, (name, a)) in matrices().into_iter().enumerate() {
        let path = folder.join(format!("{number}.mtx"));
        if name.starts_with("stencil") {
            write_csr_symmetric(&path, a.view(), Symmetry::Symmetric, &[]).unwrap();
        } else {
            write_coo(&path, &csr_to_coo(a.view()), &[]).unwrap();
        }
        // Small blocks, so that lines are on both sides of many bounds.
        let options = ReadOptions { chunk_bytes: 64, ..ReadOptions::default() };
        let expected: Csr<f64> = read_csr(&path, &options).unwrap();
        for ranks in RANKS {
            let parts = run(ranks, |comm| {
                let (rows, matrix) = matrix_market::read(comm, &path, &options)?;
                assert_eq!(rows.len(comm.rank()), matrix.rows() as u64);
                Ok((rows, matrix))
            });
            let parts = parts.unwrap();
            assert!(parts.iter().all(|part| part.0 == parts[0].0));
            // The division is by entries and rows: a rank has at most a row more than its share.
            let weight = |rows: &Rows<f64>| rows.rows() + rows.nnz();
            let longest = (0..a.rows()).map(|row| a.row(row).0.len() + 1).max().unwrap_or(0);
            let share = (a.rows() + a.nnz()) / ranks + longest + 1;
            assert!(parts.iter().all(|part| weight(&part.1) <= share), "{name} {ranks}");
            let matrix = whole(parts.into_iter().map(|part| part.1).collect(), a.cols());
            assert_eq!(matrix, expected, "{name} {ranks}");
        }
    }
    let shared = |text: &str| {
        let path = folder.join("wrong.mtx");
        std::fs::write(&path, text).unwrap();
        let result = run(3, |comm| {
            matrix_market::read::<f64>(comm, &path, &ReadOptions::default()).map(drop)
        });
        result.unwrap_err().to_string()
    };
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    let message = shared(&format!("{banner}3 3 3\n1 1 1\n2 2 2\n"));
    assert!(message.contains("wrong.mtx: expected 3 entries, found 2"), "{message}");
    let message = shared(&format!("{banner}3 3 3\n1 1 1\n2 2 2\n3 4 5\n"));
    assert!(message.contains("wrong.mtx:5: expected a column index"), "{message}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn conjugate_gradients_solve_on_any_number_of_ranks() {
    let a = generate::named("stencil7[n=8]").unwrap().generate::<f64>().unwrap();
    // Diagonally dominant, hence positive definite.
    let mut a = a.map(|_| -1.0);
    let diagonal: Vec<usize> = (0..a.rows())
        .map(|row| {
            a.view().row_range(row).start + a.row(row).0.binary_search(&(row as u32)).unwrap()
        })
        .collect();
    diagonal.into_iter().for_each(|at| a.values_mut()[at] = 6.5);
    let solution: Vec<f64> = (0..a.rows()).map(|i| (i % 11) as f64 - 5.0).collect();
    for ranks in RANKS {
        let converged = run(ranks, |comm| {
            let mine = distribute(comm, &a)?;
            let own = mine.row_partition().range(comm.rank());
            let exact = &solution[own.start as usize..own.end as usize];
            let mut op = DistOperator::new(comm, mine, &Options::default())?;
            let (mut b, mut x) = (vec![0.0; exact.len()], vec![0.0; exact.len()]);
            op.apply(exact, &mut b)?;
            let options = CgOptions { tolerance: 1e-10, ..CgOptions::default() };
            let end = conjugate_gradients(comm, &mut op, &b, &mut x, &options)?;
            assert!(end.converged && end.iterations < 80 && end.residual <= 1e-10, "{end:?}");
            let error = x.iter().zip(exact).map(|(x, exact)| (x - exact).abs()).fold(0.0, f64::max);
            assert!(error < 1e-7, "{ranks}: {error}");
            // One that may not iterate does not converge; a solution does at once.
            let none = CgOptions { max_iterations: 0, ..options };
            let mut zero = vec![0.0; b.len()];
            assert!(!conjugate_gradients(comm, &mut op, &b, &mut zero, &none)?.converged);
            b.fill(0.0);
            zero.fill(0.0);
            assert!(conjugate_gradients(comm, &mut op, &b, &mut zero, &none)?.converged);
            Ok(end.iterations)
        });
        assert_eq!(converged.unwrap().windows(2).filter(|pair| pair[0] != pair[1]).count(), 0);
    }
}

#[test]
fn archives_are_read_by_rows() {
    let folder = std::env::temp_dir().join(format!("spm-dist-npz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("matrix.npz");
    for (name, a) in matrices() {
        save_npz(&path, a.view()).unwrap();
        for ranks in RANKS {
            let parts = run(ranks, |comm| {
                let (rows, matrix) = npz::read(comm, &path)?;
                assert_eq!(rows.len(comm.rank()), matrix.rows() as u64);
                Ok((rows, matrix))
            });
            let parts = parts.unwrap();
            assert!(parts.iter().all(|part| part.0 == parts[0].0));
            let weight = |rows: &Rows<f64>| rows.rows() + rows.nnz();
            let longest = (0..a.rows()).map(|row| a.row(row).0.len() + 1).max().unwrap_or(0);
            let share = (a.rows() + a.nnz()) / ranks + longest + 1;
            assert!(parts.iter().all(|part| weight(&part.1) <= share), "{name} {ranks}");
            let matrix = whole(parts.into_iter().map(|part| part.1).collect(), a.cols());
            assert_eq!(matrix, a, "{name} {ranks}");
        }
    }
    let refused = |path: &std::path::Path| {
        let result = run(3, |comm| npz::read::<f32>(comm, path).map(drop));
        result.unwrap_err().to_string()
    };
    let message = refused(&path);
    assert!(
        message.starts_with("rank 0: ") && message.contains("expected elements of type <f4"),
        "{message}"
    );
    let message = refused(&folder.join("none.npz"));
    assert!(message.contains("none.npz"), "{message}");
    // Each rank another file.
    let other = folder.join("other.npz");
    save_npz(&path, Csr::<f64>::empty(5, 4).unwrap().view()).unwrap();
    save_npz(&other, Csr::<f64>::empty(5, 1).unwrap().view()).unwrap();
    let differ = run(2, |comm| {
        npz::read::<f64>(comm, if comm.rank() == 0 { &path } else { &other }).map(drop)
    });
    assert!(differ.unwrap_err().to_string().contains("a file of 5 rows, 1 columns"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Global indices beyond 32 bits.
#[test]
fn global_indices_have_64_bits() -> Result<(), DistError> {
    let (total, first) = (1 << 40, (1 << 40) - 8);
    let columns = Partition::from_bounds(total, vec![0, 0, first, first + 3, total])?;
    assert_eq!(columns.owner(total - 1), 3);
    let bounds = vec![0, 0, 1 << 20, (1 << 20) + 2, (1 << 20) + 6];
    let rows = Partition::from_bounds((1 << 20) + 6, bounds)?;
    let refused = run(4, |comm| {
        let own = rows.range(comm.rank());
        let matrix = Rows::<f64>::generate(own, total, |_, row| row.push((total - 1, 1.0)))?;
        DistCsr::new(comm, &rows, &columns, matrix).map(drop)
    });
    // 2^40 columns of one rank do not fit its local indices.
    assert!(refused.unwrap_err().to_string().contains("rank 1: number of columns"));
    Ok(())
}

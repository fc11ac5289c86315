//! Symmetric permutations of distributed matrices, by any owners and by METIS: the permuted matrix entry by
//! entry, its products, and vectors there and back.

mod common;

use common::{RANKS, matrices};
use spm_dist::threads::{Delivery, ThreadCommunicator, run, run_with};
use spm_dist::{
    Communicator, DistCsr, DistError, DistOperator, Options, Partition, Permutation, Rows,
};
use spm_formats::Csr;
use spm_testing::edge_cases::vector;
use spm_testing::{generate, reference};

/// Owners without a pattern; with three ranks and more, some without indices.
fn scattered(index: u64, ranks: usize) -> u32 {
    ((index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % ranks.min(5) as u64) as u32
}

type Divide = fn(&ThreadCommunicator, &Partition, &Rows<f64>) -> Result<Permutation, DistError>;

const SCATTERED: Divide = |comm, rows, _| {
    let owners = rows.range(comm.rank()).map(|index| scattered(index, comm.size()));
    Permutation::new(comm, rows, &owners.collect::<Vec<_>>())
};
const BY_METIS: Divide = |comm, rows, a| Permutation::from_metis(comm, rows, a);

fn of_rank(all: &[f64], rows: &Partition, rank: usize, k: usize) -> Vec<f64> {
    let range = rows.range(rank);
    all[range.start as usize * k..range.end as usize * k].to_vec()
}

/// The square matrices.
fn square() -> impl Iterator<Item = (String, Csr<f64>)> {
    matrices().into_iter().filter(|(_, a)| a.rows() == a.cols())
}

fn check(name: &str, a: &Csr<f64>, ranks: usize, divide: Divide) {
    let context = format!("{name} {ranks}");
    let n = a.rows();
    let x = vector::<f64>(n);
    let wide = vector::<f64>(3 * n);
    let parts = run_with(ranks, Delivery { seed: Some(11) }, |comm| {
        let rank = comm.rank();
        let old = Partition::even(n as u64, comm.size());
        let mine = Rows::of(a.view(), old.range(rank));
        let permutation = divide(comm, &old, &mine)?;
        let new = permutation.partition().clone();
        let mine = permutation.matrix(comm, &mine)?;
        let dist = DistCsr::new(comm, &new, &new, mine.clone())?;
        let mut op = DistOperator::new(comm, dist, &Options::default())?;
        let forward = permutation.forward(comm, &of_rank(&x, &old, rank, 1), 1)?;
        let mut y = vec![f64::NAN; forward.len()];
        op.apply(&forward, &mut y)?;
        let back = permutation.back(comm, &y, 1)?;
        let wide = of_rank(&wide, &old, rank, 3);
        let there = permutation.forward(comm, &wide, 3)?;
        assert_eq!(permutation.back(comm, &there, 3)?, wide);
        Ok((permutation.numbers().to_vec(), new, mine, forward, back))
    });
    let parts = parts.unwrap();
    let numbers: Vec<u64> = parts.iter().flat_map(|part| part.0.clone()).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..n as u64).collect::<Vec<_>>(), "{context}: each number once");
    for (rank, (_, new, mine, forward, _)) in parts.iter().enumerate() {
        assert_eq!(new, &parts[0].1);
        let range = new.range(rank);
        assert_eq!(mine.rows() as u64, new.len(rank));
        for (local, global) in range.enumerate() {
            let old = numbers.iter().position(|&number| number == global).unwrap();
            assert_eq!(forward[local], x[old], "{context}: element {global}");
            let (cols, values) = a.row(old);
            let mut expected: Vec<(u64, f64)> = cols
                .iter()
                .zip(values)
                .map(|(&col, &value)| (numbers[col as usize], value))
                .collect();
            expected.sort_by_key(|entry| entry.0);
            let entries = mine.row_ptr()[local]..mine.row_ptr()[local + 1];
            let found: Vec<(u64, f64)> =
                entries.map(|entry| (mine.col_ind()[entry], mine.values()[entry])).collect();
            assert_eq!(found, expected, "{context}: row {global}");
        }
    }
    let y: Vec<f64> = parts.iter().flat_map(|part| part.4.clone()).collect();
    let expected = reference::spmv(&spm_formats::convert::csr_to_coo(a.view()), &x);
    let errors = reference::compare(&y, &expected);
    assert!(errors.acceptable(), "{context}: {errors:?}");
}

#[test]
fn any_owners() {
    for (name, a) in square() {
        for ranks in RANKS {
            check(&name, &a, ranks, SCATTERED);
        }
    }
}

#[test]
fn owners_of_metis() {
    for (name, a) in square() {
        for ranks in RANKS {
            check(&name, &a, ranks, BY_METIS);
        }
    }
}

/// Ghost entries of all ranks, and the most rows and entries of one.
fn halo(a: &Csr<f64>, ranks: usize, divide: Divide) -> (usize, usize) {
    let parts = run(ranks, |comm| {
        let old = Partition::by_entries(a.row_ptr(), comm.size());
        let mine = Rows::of(a.view(), old.range(comm.rank()));
        let permutation = divide(comm, &old, &mine)?;
        let again = divide(comm, &old, &mine)?;
        assert_eq!(permutation, again, "the same each time");
        let mine = permutation.matrix(comm, &mine)?;
        let weight = mine.rows() + mine.nnz();
        let new = permutation.partition();
        let dist = DistCsr::new(comm, new, new, mine)?;
        Ok((dist.halo().ghosts().len(), weight))
    });
    let parts = parts.unwrap();
    let ghosts = parts.iter().map(|part| part.0).sum();
    (ghosts, parts.iter().map(|part| part.1).max().unwrap())
}

/// A mesh whose points are numbered at random: blocks of rows need all of x, the parts of METIS their surface.
#[test]
fn metis_finds_the_parts_of_a_mesh() {
    let a = generate::named("mesh2[n=40,order=random]").unwrap().generate::<f64>().unwrap();
    let stay: Divide =
        |comm, rows, a| Permutation::new(comm, rows, &vec![comm.rank() as u32; a.rows()]);
    for ranks in [2, 4, 7] {
        let (blocks, _) = halo(&a, ranks, stay);
        let (parts, most) = halo(&a, ranks, BY_METIS);
        assert!(8 * parts < blocks, "{ranks}: {parts} ghost entries, {blocks} of blocks");
        let share = (a.rows() + a.nnz()) as f64 / ranks as f64;
        assert!(most as f64 <= 1.1 * share, "{ranks}: {most} of {share}");
    }
}

/// Takes rows of a square matrix, and of one that is not.
type Attempt = fn(&ThreadCommunicator, &Partition, Rows<f64>, Rows<f64>) -> Result<(), DistError>;

#[test]
fn what_does_not_fit_is_refused_on_every_rank() {
    let a = Csr::from_triplets((4, 4), (0..4).map(|i| (i, i, 1.0))).unwrap();
    let wide = Csr::from_triplets((4, 5), [(0, 4, 1.0)]).unwrap();
    let refused = |what: Attempt| {
        let result = run(2, |comm| {
            let rows = Partition::even(4, 2);
            let of = |a: &Csr<f64>| Rows::of(a.view(), rows.range(comm.rank()));
            what(comm, &rows, of(&a), of(&wide))
        });
        result.unwrap_err().to_string()
    };
    let message = refused(|comm, rows, _, _| {
        Permutation::new(comm, rows, &[0, comm.rank() as u32 * 2]).map(drop)
    });
    assert_eq!(message, "rank 1: owner 2 is not one of 2 ranks");
    let message =
        refused(|comm, rows, _, _| Permutation::new(comm, rows, &[0][comm.rank()..]).map(drop));
    assert!(message.starts_with("rank 0: owners: expected 2 elements, found 1"), "{message}");
    let message = refused(|comm, rows, _, _| {
        let (more, owners) = (Partition::even(rows.total(), 3), [0, 0]);
        Permutation::new(comm, &more, &owners).map(drop)
    });
    assert!(message.contains("the partition is for 3 ranks"), "{message}");
    let message =
        refused(|comm, rows, _, wide| Permutation::from_metis(comm, rows, &wide).map(drop));
    assert!(message.contains("the partition covers 4 columns; there are 5"), "{message}");
    let message = refused(|comm, rows, _, wide| {
        Permutation::new(comm, rows, &[0, 1])?.matrix(comm, &wide).map(drop)
    });
    assert!(message.contains("the partition covers 4 columns; there are 5"), "{message}");
    let message = refused(|comm, rows, _, _| {
        Permutation::new(comm, rows, &[0, 1])?.forward(comm, &[1.0; 3], 2).map(drop)
    });
    assert!(message.contains("x: expected 4 elements, found 3"), "{message}");
    let message = refused(|comm, rows, _, _| {
        Permutation::new(comm, rows, &[0, 0])?.back(comm, &[1.0; 3], 1).map(drop)
    });
    assert!(message.contains("y: expected 4 elements, found 3"), "{message}");
}

//! Ranks that end, panic or disagree: every rank gets an error that names the one at fault.

mod common;

use std::sync::Mutex;

use common::distribute;
use spm_dist::threads::{self, Delivery, run, run_with};
use spm_dist::{
    CommError, Communicator, DistCsr, DistError, DistOperator, Kernel, Options, Partition,
    PartitionError, Rows, agree,
};
use spm_formats::Csr;

/// The errors of all ranks beside that of the whole run.
fn errors<R: Send>(
    ranks: usize,
    body: impl Fn(&threads::ThreadCommunicator) -> Result<R, DistError> + Sync,
) -> (DistError, Vec<Option<DistError>>) {
    let seen = Mutex::new(vec![None; ranks]);
    let error = run_with(ranks, Delivery { seed: Some(4) }, |comm| {
        let result = body(comm);
        seen.lock().unwrap()[comm.rank()] = result.as_ref().err().cloned();
        result
    });
    (error.err().expect("a rank fails"), seen.into_inner().unwrap())
}

fn ring(n: usize) -> Csr<f64> {
    let entries = (0..n).flat_map(|i| [(i, i, 2.0), (i, (i + 1) % n, -1.0)]);
    Csr::from_triplets((n, n), entries).unwrap()
}

#[test]
fn a_rank_that_panics_ends_all_and_is_named() {
    let (error, seen) = errors(4, |comm| {
        let mut op = DistOperator::new(comm, distribute(comm, &ring(40))?, &Options::default())?;
        let (x, mut y) = (vec![1.0; op.matrix().local_cols()], vec![0.0; op.matrix().local_rows()]);
        for round in 0..1000 {
            assert!(comm.rank() != 2 || round < 3, "out of memory");
            op.apply(&x, &mut y)?;
        }
        Ok(())
    });
    assert!(error.to_string().contains("rank 2: it panicked: out of memory"), "{error}");
    for rank in [0, 1, 3] {
        assert!(matches!(seen[rank], Some(DistError::Comm(CommError::Lost { .. }))), "{seen:?}");
    }
}

#[test]
fn a_rank_that_gives_up_ends_those_that_wait_for_it() {
    // In a product, in a collective call, in a reduction.
    for place in 0..3 {
        let (error, seen) = errors(3, |comm| {
            let a = distribute(comm, &ring(30))?;
            let mut op = DistOperator::new(comm, a, &Options::default())?;
            let columns = op.matrix().local_cols();
            let mut y = vec![0.0; op.matrix().local_rows()];
            let wrong = usize::from(comm.rank() == 1);
            match place {
                0 => op.apply(&vec![1.0; columns - wrong], &mut y)?,
                _ if wrong == 1 => return Err(DistError::File("no such file".to_owned())),
                1 => drop(comm.all_gather(b"x")?),
                _ => comm.sum(&mut [1.0])?,
            }
            comm.all_gather(&[])?;
            Ok(())
        });
        let expected = ["rank 1: x: expected 10 elements, found 9", "rank 1: no such file"];
        assert_eq!(error.to_string(), expected[place.min(1)]);
        assert!(seen.iter().all(Option::is_some), "{seen:?}");
        let others = format!("{:?}", seen[2]);
        assert!(others.contains(expected[place.min(1)].trim_start_matches("rank 1: ")), "{others}");
    }
}

#[test]
fn products_after_an_error_have_it_too() {
    for (overlap, transposed_first) in [(true, false), (false, false), (true, true)] {
        let (error, seen) = errors(3, |comm| {
            let mut options = Options::default();
            (options.overlap, options.transpose) = (overlap, true);
            let mut op = DistOperator::new(comm, distribute(comm, &ring(30))?, &options)?;
            if comm.rank() == 1 {
                return Err(DistError::File("no such file".to_owned()));
            }
            let (x, mut y) = ([1.0; 10], [0.0; 10]);
            // A neighbour may have sent what the first one needs.
            let mut fail = |transposed: bool| loop {
                let product =
                    if transposed { op.apply_transpose(&x, &mut y) } else { op.apply(&x, &mut y) };
                if let Err(error) = product {
                    return error;
                }
            };
            let first = fail(transposed_first);
            for transposed in [false, true] {
                assert_eq!(fail(transposed).to_string(), first.to_string());
            }
            let wrong = op.apply(&x[1..], &mut y).unwrap_err();
            assert_eq!(wrong.to_string(), "x: expected 10 elements, found 9");
            Err::<(), _>(first)
        });
        assert_eq!(error.to_string(), "rank 1: no such file");
        for rank in [0, 2] {
            let lost = matches!(seen[rank], Some(DistError::Comm(CommError::Lost { .. })));
            assert!(lost, "{seen:?}");
        }
    }
}

#[test]
fn ranks_that_call_different_things_are_told() {
    let (error, seen) = errors(2, |comm| {
        if comm.rank() == 0 {
            comm.exchange(&[]).map(drop)?;
        } else {
            comm.all_gather(&[]).map(drop)?;
        }
        Ok(())
    });
    assert!(matches!(error, DistError::Rank { .. }), "{error}");
    let told = seen.iter().flatten().any(|error| {
        matches!(error, DistError::Comm(CommError::Disagreement { what, .. }) if what.contains("exchange"))
    });
    assert!(told, "{seen:?}");
}

#[test]
fn ends_of_a_channel_that_differ_are_told() {
    let (_, seen) = errors(2, |comm| {
        let (me, other) = (comm.rank(), 1 - comm.rank());
        comm.channel(&[(other, 8 + me)], &[(other, 8)]).map(drop).map_err(DistError::from)
    });
    let told = seen.iter().flatten().any(|error| error.to_string().contains("bytes, this one"));
    assert!(told, "{seen:?}");
}

/// Every rank has this error.
fn shared(
    ranks: usize,
    build: impl Fn(&threads::ThreadCommunicator) -> Result<(), DistError> + Sync,
) -> String {
    let (error, seen) = errors(ranks, build);
    for other in &seen {
        let other = other.as_ref().expect("every rank has the error");
        assert!(other.is_shared(), "{other:?}");
        assert_eq!(other.to_string(), error.to_string());
    }
    error.to_string()
}

#[test]
fn partitions_that_do_not_fit_are_refused_before_any_exchange() {
    assert!(matches!(
        Partition::from_bounds(9, vec![0, 4, 8]),
        Err(PartitionError::Bounds { position: 2, .. })
    ));
    let a = ring(9);
    let with = |rows: Partition, cols: Partition| {
        shared(3, |comm| {
            let mine = Rows::of(a.view(), Partition::even(9, 3).range(comm.rank()));
            DistCsr::new(comm, &rows, &cols, mine).map(drop)
        })
    };
    let even = |total, ranks| Partition::even(total, ranks);
    assert_eq!(
        with(even(9, 4), even(9, 4)),
        "rank 0: the partition is for 4 ranks; the communicator has 3"
    );
    assert_eq!(with(even(8, 3), even(9, 3)), "rank 2: the partition covers 2 rows; there are 3");
    assert_eq!(
        with(even(9, 3), even(10, 3)),
        "rank 0: the partition covers 10 columns; there are 9"
    );
}

#[test]
fn ranks_that_disagree_are_named() {
    let a = ring(12);
    // Another division on rank 1, whose own rows are the same.
    let message = shared(3, |comm| {
        let bounds = if comm.rank() == 1 { vec![0, 4, 8, 12] } else { vec![0, 4, 9, 12] };
        let rows = Partition::from_bounds(12, bounds)?;
        let mine = Rows::of(a.view(), rows.range(comm.rank()));
        DistCsr::new(comm, &rows, &rows, mine).map(drop)
    });
    assert!(
        message.starts_with("rank 1: has version ") && message.contains("rank 0 has"),
        "{message}"
    );
    let message = shared(3, |comm| {
        let mut options = Options::default();
        options.columns = 1 + comm.rank() / 2;
        DistOperator::new(comm, distribute(comm, &a)?, &options).map(drop)
    });
    assert!(message.starts_with("rank 2: has 2 columns"), "{message}");
    let message = shared(2, |comm| {
        let mut options = Options::default();
        options.kernel = Kernel::Fixed("csr-fastest".to_owned());
        DistOperator::new(comm, distribute(comm, &a)?, &options).map(drop)
    });
    assert!(message.contains("csr-fastest"), "{message}");
}

#[test]
fn the_cause_is_kept_on_the_rank_that_failed() {
    let (_, seen) = errors(3, |comm| {
        let local = if comm.rank() == 1 { Err(DistError::Unprepared("not ready")) } else { Ok(()) };
        agree(comm, local)
    });
    for (rank, error) in seen.iter().enumerate() {
        let error = error.as_ref().unwrap();
        assert_eq!(error.to_string(), "rank 1: not ready");
        assert_eq!(std::error::Error::source(error).is_some(), rank == 1);
    }
}

#[test]
fn a_product_that_was_not_prepared_is_refused() {
    run(2, |comm| {
        let mut op = DistOperator::new(comm, distribute(comm, &ring(8))?, &Options::default())?;
        assert!(matches!(
            op.apply_transpose(&[0.0; 4], &mut [0.0; 4]),
            Err(DistError::Unprepared(_))
        ));
        Ok(())
    })
    .unwrap();
}

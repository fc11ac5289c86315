//! Operators in structs, between threads, and their clones.

use std::sync::Arc;
use std::thread;

use crate::common::{MATRICES, bits, matrix};
use spm::{Layout, Operator, Rates};
use spm_testing::edge_cases::vector;

/// What a program keeps.
#[derive(Debug, Clone)]
struct State {
    op: Operator<f64>,
    x: Vec<f64>,
}

fn send_sync_static<T: Send + Sync + 'static>() {}

#[test]
fn an_operator_lives_in_a_struct_and_between_threads() {
    send_sync_static::<Operator<f32>>();
    send_sync_static::<Operator<f64>>();
    send_sync_static::<spm::Error>();
    let a = matrix::<f64>(MATRICES[2]);
    let state = Arc::new(State { x: vector(a.cols()), op: Operator::new(a).unwrap() });
    let other = Arc::clone(&state);
    let y = thread::spawn(move || {
        let mut y = vec![0.0; other.op.rows()];
        other.op.apply(&other.x, &mut y).unwrap();
        y
    });
    let mut expected = vec![0.0; state.op.rows()];
    state.op.apply(&state.x, &mut expected).unwrap();
    assert_eq!(bits(&y.join().unwrap()), bits(&expected));
    let shown = format!("{:?}", state.op);
    assert!(shown.starts_with("Operator { shape: (2744, 2744), nnz: "), "{shown}");
}

#[test]
fn products_of_several_threads_at_once_have_equal_bits() {
    for name in [MATRICES[1], MATRICES[2], MATRICES[5]] {
        for expected_products in [1, 1_000_000] {
            let a = matrix::<f64>(name);
            let builder = Operator::builder(a).threads(3);
            let builder = builder.expected_products(expected_products).rates(Rates::typical());
            let op = builder.build().unwrap();
            let x = vector::<f64>(op.cols().max(op.rows()) * 4);
            let product = || {
                let (n, m) = (op.cols(), op.rows());
                let (mut y, mut many) = (vec![1.0; m], vec![f64::NAN; m * 4]);
                let mut columns = many.clone();
                op.apply_scaled(0.3, &x[..n], 0.7, &mut y).unwrap();
                op.apply_many(&x[..n * 4], &mut many, 4, Layout::RowMajor).unwrap();
                op.apply_many(&x[..n * 4], &mut columns, 4, Layout::ColumnMajor).unwrap();
                bits(&[y, many, columns].concat())
            };
            let expected = product();
            thread::scope(|scope| {
                let same = || (0..5).all(|_| product() == expected);
                let threads: Vec<_> = (0..3).map(|_| scope.spawn(same)).collect();
                for thread in threads {
                    assert!(thread.join().unwrap(), "{name}");
                }
            });
        }
    }
}

#[test]
fn transposed_products_of_a_deterministic_operator_have_equal_bits() {
    let a = matrix::<f64>(MATRICES[5]);
    let products = |threads| {
        let builder = Operator::builder(a.clone()).deterministic().rates(Rates::typical());
        let op = builder.threads(threads).build().unwrap();
        let x = vector::<f64>(a.rows());
        let product = || {
            let mut y = vec![f64::NAN; a.cols()];
            op.apply_transpose(&x, &mut y).unwrap();
            bits(&y)
        };
        let several = || (0..10).map(|_| product()).collect::<Vec<_>>();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(several)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        })
    };
    for threads in [1, 2, 5] {
        let mut all = [products(threads), products(threads)].concat();
        all.dedup();
        assert_eq!(all.len(), 1, "{threads} threads");
    }
}

#[test]
fn clones_share_the_matrix_and_the_plan() {
    let builder = Operator::builder(matrix::<f64>(MATRICES[2])).expected_products(10_000);
    let op = builder.rates(Rates::typical()).build().unwrap();
    let before = op.memory_bytes();
    let clone = op.clone();
    assert!(Arc::ptr_eq(op.matrix(), clone.matrix()));
    let (x, mut y) = (vector(op.rows()), vec![0.0; op.cols()]);
    clone.apply_transpose(&x, &mut y).unwrap();
    // The transposed copy is everybody's.
    assert!(op.memory_bytes() > before);
    assert_eq!(op.describe(), clone.describe());
    drop(op);
    clone.apply(&x, &mut y).unwrap();
}

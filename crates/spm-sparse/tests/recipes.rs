//! What an operator says of its choice, and rebuilding the choice.

mod common;

use std::error::Error as _;

use common::{MATRICES, bits, matrix};
use spm::{Error, Operator, Reason, Recipe};
use spm_testing::edge_cases::vector;

fn product(op: &Operator<f64>) -> Vec<u64> {
    let (x, mut y) = (vector::<f64>(op.cols()), vec![0.0; op.rows()]);
    op.apply(&x, &mut y).unwrap();
    bits(&y)
}

#[test]
fn a_recipe_makes_the_same_choice_elsewhere() {
    for name in MATRICES {
        for expected_products in [1, 1_000_000] {
            let builder = Operator::builder(matrix::<f64>(name)).threads(2);
            let op = builder.expected_products(expected_products).build().unwrap();
            let recipe: Recipe = op.recipe().to_string().parse().unwrap();
            assert_eq!(&recipe, op.recipe());
            let again = Operator::builder(matrix::<f64>(name)).recipe(recipe).build().unwrap();
            assert_eq!(again.recipe(), op.recipe(), "{name}");
            assert_eq!(product(&again), product(&op), "{name}: {}", op.recipe());
            assert_eq!(again.describe().reason, Reason::Recipe);
        }
    }
}

#[test]
fn recipes_of_other_kernels() {
    let build = |recipe: &str| {
        let recipe = recipe.parse().unwrap();
        Operator::builder(matrix::<f64>(MATRICES[3])).recipe(recipe).build()
    };
    let op = build("cpu csr-merge on 3 threads").unwrap();
    assert_eq!(op.recipe().threads(), 3);
    assert!(op.recipe().kernel().starts_with("csr-merge"), "{}", op.recipe());
    for wrong in ["cpu csr-nothing on 1 thread", "cpu csr-merge[size=3] on 1 thread"] {
        let error = build(wrong).unwrap_err();
        assert!(matches!(error, Error::Recipe(_)), "{error:?}");
        assert!(error.source().is_some());
    }
    // This kernel is for square matrices.
    let error = build("cpu sell-symmetric on 2 threads").unwrap_err();
    assert!(matches!(error, Error::Plan(_)), "{error:?}");
}

#[test]
#[cfg(feature = "serde")]
fn recipes_are_serialised_as_text() {
    let op = Operator::new(matrix::<f64>(MATRICES[3])).unwrap();
    let text = serde_json::to_string(op.recipe()).unwrap();
    assert_eq!(text, format!("\"{}\"", op.recipe()));
    assert_eq!(&serde_json::from_str::<Recipe>(&text).unwrap(), op.recipe());
    assert!(serde_json::from_str::<Recipe>("\"nothing\"").is_err());
}

#[test]
fn the_description_says_what_was_decided() {
    let (small, large) = (matrix::<f64>(MATRICES[0]), matrix::<f64>(MATRICES[2]));
    let describe = |op: Operator<f64>| op.describe();
    let tiny = describe(Operator::new(small).unwrap());
    assert_eq!((tiny.reason, tiny.recipe.threads()), (Reason::Small, 1));
    let few = describe(Operator::builder(large.clone()).expected_products(7).build().unwrap());
    assert!(matches!(few.reason, Reason::Few { expected: 7, .. }), "{few:?}");
    let by_default = describe(Operator::new(large.clone()).unwrap());
    assert!(matches!(by_default.reason, Reason::Few { expected: 100, .. }), "{by_default:?}");
    let raced = Operator::builder(large.clone()).expected_products(u64::MAX);
    let raced = describe(raced.build().unwrap());
    assert!(matches!(raced.reason, Reason::Raced { .. }), "{raced:?}");
    let fixed = describe(Operator::builder(large.clone()).deterministic().build().unwrap());
    assert_eq!(fixed.reason, Reason::Deterministic);
    assert_eq!((few.shape, few.nnz, few.scalar), (large.shape(), large.nnz(), "f64"));
    assert!(few.memory_bytes >= large.memory_bytes());
    assert!(few.bytes_per_product >= large.memory_bytes());
    let text = few.to_string();
    for part in ["2744 x 2744", "7 products are expected", "csr-", "memory: ", "transpose: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

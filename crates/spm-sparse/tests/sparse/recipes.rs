//! What an operator says of its choice, and rebuilding the choice.

use std::error::Error as _;

use crate::common::{MATRICES, bits, matrix};
use spm::{Builder, Error, Layout, Operator, Rates, RatesFile, Reason, Recipe};
use spm_cpu::spmv::{Choice, predict, roughly};
use spm_testing::edge_cases::vector;

fn product(op: &Operator<f64>) -> Vec<u128> {
    let (x, mut y) = (vector::<f64>(op.cols()), vec![0.0; op.rows()]);
    op.apply(&x, &mut y).unwrap();
    bits(&y)
}

#[test]
fn a_recipe_makes_the_same_choice_elsewhere() {
    for name in MATRICES {
        for expected_products in [1, 1_000_000] {
            let builder = Operator::builder(matrix::<f64>(name)).threads(2).rates(Rates::typical());
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

/// The threads of a choice are not those of the other products.
#[test]
fn a_choice_is_taken_for_products_with_a_vector_alone() {
    let a = || matrix::<f64>("stencil27[n=12]");
    let recipe: Recipe = "cpu csr-compact on 1 thread".parse().unwrap();
    let build = |builder: Builder<f64>| builder.threads(3).rates_file(RatesFile::none()).build();
    let chosen = build(Operator::builder(a()).chosen(recipe.clone())).unwrap();
    let kernel = chosen.recipe().kernel();
    assert!(kernel.starts_with("csr-compact") && chosen.recipe().threads() == 1, "{kernel}");
    assert_eq!(chosen.describe().reason, Reason::Recipe);
    assert_eq!(chosen.threads(), 3);
    assert_eq!(build(Operator::builder(a()).recipe(recipe.clone())).unwrap().recipe().threads(), 3);
    let one = Operator::builder(a()).recipe(recipe).build().unwrap();
    assert_eq!(product(&chosen), product(&one));
    assert_eq!(one.threads(), 1);
    // What has not been chosen yet.
    let free = || build(Operator::builder(a())).unwrap();
    assert!(chosen.is_settled() && !free().is_settled());
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
    let builder = || Operator::builder(large.clone()).rates(Rates::typical());
    let describe = |builder: Builder<f64>| builder.build().unwrap().describe();
    let tiny = Operator::new(small).unwrap().describe();
    assert_eq!((tiny.reason, tiny.recipe.threads()), (Reason::Small, 1));
    let one = describe(builder().expected_products(1));
    assert_eq!(one.reason, Reason::Few { expected: 1, pays_from: None });
    let seven = describe(builder().expected_products(7));
    assert_eq!(seven.reason, Reason::Few { expected: 7, pays_from: None });
    assert_eq!(describe(builder()).reason, Reason::First);
    let raced = describe(builder().expected_products(u64::MAX));
    assert_eq!(raced.reason, Reason::Raced { expected: u64::MAX });
    assert!(raced.measured.is_some());
    let many = describe(builder().expected_products(u64::MAX).deterministic());
    assert_eq!(many.reason, Reason::Converted { expected: u64::MAX });
    assert!(many.expected < seven.expected && many.measured.is_none(), "{many:?}");
    let builder = || Operator::builder(matrix::<f64>("stencil27[n=20]")).rates(Rates::typical());
    let larger = matrix::<f64>("stencil27[n=20]");
    let predictions = predict(larger.view(), spm::Threads::all_cores().count(), &Rates::typical());
    // It has to pay in half of the products, by the margin.
    let pays_from = predictions.pays_from().map(|products| 2 * products);
    let expected = pays_from.unwrap();
    let converted = describe(builder().expected_products(expected).deterministic());
    assert_eq!(converted.reason, Reason::Converted { expected });
    let expected = expected - 1;
    let few = describe(builder().expected_products(expected));
    assert_eq!(few.reason, Reason::Few { expected, pays_from });
    assert_eq!((few.shape, few.nnz, few.scalar), (larger.shape(), larger.nnz(), "f64"));
    assert!(few.memory_bytes >= larger.memory_bytes());
    assert!(few.bytes_per_product >= larger.memory_bytes());
    let text = few.to_string();
    let parts = ["8000 x 8000", "products are expected", "csr-", "memory: ", "transpose: "];
    for part in parts.into_iter().chain(["us by the model, unknown by the clock"]) {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_product_is_timed_on_request() {
    let op = Operator::builder(matrix::<f64>(MATRICES[2])).expected_products(1).build().unwrap();
    assert_eq!(op.describe().measured, None);
    let time = op.measure().unwrap();
    assert!(time.as_nanos() > 0 && time.as_secs() < 60);
    assert_eq!(op.describe().measured, Some(time));
    let poor = Operator::builder(matrix::<f64>(MATRICES[2])).budget(0).build().unwrap();
    assert_eq!(poor.measure(), None);
}

/// With the same rates the same choice, which other rates change.
#[test]
fn deterministic_choices_are_a_function_of_the_rates() {
    let text = Rates::typical().to_string();
    let build = |rates: &str| {
        let builder = Operator::builder(matrix::<f64>(MATRICES[2])).threads(2).deterministic();
        let rates: Rates = rates.parse().unwrap();
        builder.expected_products(1000).rates(rates).build().unwrap()
    };
    // A kernel that costs nothing, and conversions that cost more than all products.
    let free =
        text.replace("csr-compact 6e-9 2e-10 4e-10 1e-5 1e-8 5e-9", "csr-compact 0 0 0 0 0 0");
    // So that arithmetic decides.
    let fast = free.replace(
        "read-one 4e10 4e10 3e10 2e10 1.5e10 1e10",
        "read-one 1e15 1e15 1e15 1e15 1e15 1e15",
    );
    assert!(fast != free && free != text);
    let free = build(&fast);
    let never = text.replace(" 5e-9 1e0", " 1 1e0").replace(" 1e-8 1e0", " 1 1e0");
    let never = build(&never.replace(" 1.5e-8 1e0", " 1 1e0").replace(" 2e-8 1e0", " 1 1e0"));
    assert!(never.recipe().kernel().starts_with("csr-nnz-balanced"), "{}", never.recipe());
    let usual = [build(&text), build(&text)];
    assert_eq!(usual[0].recipe(), usual[1].recipe());
    assert_eq!(product(&usual[0]), product(&usual[1]));
    assert_ne!(usual[0].recipe().kernel(), never.recipe().kernel());
    assert!(free.recipe().kernel().starts_with("csr-compact"), "{}", free.recipe());
}

/// One thread for one column is no choice for many columns.
#[test]
fn products_with_many_columns_use_all_threads() {
    let slow = Rates::typical().to_string().replace("start 1e-5", "start 1e0");
    let rates: Rates = slow.parse().unwrap();
    let a = matrix::<f64>(MATRICES[2]);
    let builder = || Operator::builder(a.clone()).rates(rates.clone()).deterministic();
    let bytes_of_many = |op: &Operator<f64>| {
        let before = op.memory_bytes();
        let (x, mut y) = (vector::<f64>(8 * op.cols()), vec![0.0; 8 * op.rows()]);
        op.apply_many(&x, &mut y, 8, Layout::RowMajor).unwrap();
        op.memory_bytes() - before
    };
    let op = builder().threads(2).build().unwrap();
    assert_eq!(op.recipe().threads(), 1);
    let on = |count| builder().recipe(op.recipe().clone()).threads(count).build().unwrap();
    let [one, two] = [1, 2].map(|count| bytes_of_many(&on(count)));
    // Each thread has partial sums.
    assert!(one < two);
    assert_eq!(bytes_of_many(&op), two);
}

/// Typical rates are of one thread. Where they stand in for those of the machine all threads are used.
#[test]
fn a_machine_that_was_not_measured_uses_all_threads() {
    let mut a = matrix::<f64>("stencil27[n=30]");
    // Not symmetric.
    a.values_mut().iter_mut().enumerate().for_each(|(i, value)| *value = 1.0 / (i + 1) as f64);
    let builder = || Operator::builder(a.clone()).threads(2).expected_products(500);
    let given = builder().rates(Rates::typical()).deterministic().build().unwrap();
    let unknown = builder().rates_file(RatesFile::none()).deterministic().build().unwrap();
    assert_eq!(given.recipe().threads(), 1);
    assert_eq!(unknown.recipe().threads(), 2);
    assert_eq!(unknown.recipe().kernel(), given.recipe().kernel());
}

/// Without a number of products the operator converts when as many more products would pay for it.
#[test]
fn an_operator_converts_when_its_products_make_it_likely_to_pay() {
    let (a, rates) = (matrix::<f64>(MATRICES[2]), Rates::typical());
    let predictions = predict(a.view(), 2, &rates);
    let pays = |&products: &u64| {
        // What a prediction costs is a tenth of these at most.
        let worth = products as f64 * roughly(a.rows(), a.nnz(), &rates) >= 2e-3;
        worth && predictions.choose(products, false) != Choice::Direct
    };
    let after = (3..).map(|power| 1 << power).find(pays).unwrap();
    let op = Operator::builder(a.clone()).threads(2).rates(rates).build().unwrap();
    let clone = op.clone();
    let (before, memory) = (product(&op), op.memory_bytes());
    for _ in 1..after {
        assert_eq!(product(&clone), before);
        assert_eq!(op.describe().reason, Reason::First);
    }
    let converted = product(&op);
    assert_eq!(clone.describe().reason, Reason::Later { after });
    assert!(op.memory_bytes() > memory);
    assert!((0..5).all(|_| product(&clone) == converted));
    let recipe = op.recipe().clone();
    assert!(!recipe.kernel().starts_with("csr-nnz-balanced"));
    let again = Operator::builder(a).recipe(recipe).build().unwrap();
    assert_eq!(product(&again), converted);
    // New values stay with the conversion.
    let (mut op, values) = (op, vec![0.25; clone.nnz()]);
    drop(clone);
    op.set_values(&values).unwrap();
    assert_eq!(op.describe().reason, Reason::Later { after });
}

/// A matrix for which one thread is enough is converted as well, but not where two programs are to choose alike.
#[test]
fn small_operators_convert_too() {
    let builder = || {
        let a = matrix::<f64>("stencil5[n=40]");
        Operator::builder(a).threads(2).rates(Rates::typical())
    };
    let (op, fixed) = (builder().build().unwrap(), builder().deterministic().build().unwrap());
    let first = product(&fixed);
    let mut products = 0;
    while op.describe().reason == Reason::Small && products < 1 << 14 {
        assert_eq!(product(&op).len(), first.len());
        products += 1;
    }
    // The product that converts is the first one with the conversion.
    assert_eq!(op.describe().reason, Reason::Later { after: products - 1 });
    assert_eq!(op.recipe().threads(), 1);
    assert!(!op.recipe().kernel().starts_with("csr-nnz-balanced"));
    assert!((0..products).all(|_| product(&fixed) == first));
    assert_eq!(fixed.describe().reason, Reason::Small);
}
